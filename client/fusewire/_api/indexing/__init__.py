"""Reads `x[key]`, and assigns to it."""
