"""Tests of `x[key]`."""
