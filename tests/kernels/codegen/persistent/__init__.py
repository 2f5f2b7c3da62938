"""Tests of persistent kernels."""
