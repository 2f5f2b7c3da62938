"""Compilers of each dialect, and the cache of what they have compiled."""
