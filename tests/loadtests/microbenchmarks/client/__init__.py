"""Tests of `loadtests.microbenchmarks.client`."""
