"""Compilers, and their cache."""
