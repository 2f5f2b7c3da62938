"""Tests of `loadtests.microbenchmarks.loops`."""
