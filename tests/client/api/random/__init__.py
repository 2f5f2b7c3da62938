"""Tests of random numbers: keys, generators, functions."""
