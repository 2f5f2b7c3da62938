"""Tests of the folder with the same name in `loadtests`."""
