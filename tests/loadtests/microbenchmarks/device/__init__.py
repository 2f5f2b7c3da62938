"""Tests of `loadtests.microbenchmarks.device`."""
