"""Compilers, and the cache of what they compiled."""
