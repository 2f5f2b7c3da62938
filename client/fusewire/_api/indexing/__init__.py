"""Reads and assigns `x[key]`."""
