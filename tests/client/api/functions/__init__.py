"""Tests of the functions, by topic."""
