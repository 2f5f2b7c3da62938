"""Tests of `loadtests.microbenchmarks.service`."""
