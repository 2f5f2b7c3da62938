"""Moves and joins elements."""
