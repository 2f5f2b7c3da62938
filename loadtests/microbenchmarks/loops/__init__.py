"""Loops, new and known."""
