"""Loops that are timed."""
