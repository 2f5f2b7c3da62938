"""Tests of the examples at the root of the repository."""
