"""Loops of the microbenchmarks."""
