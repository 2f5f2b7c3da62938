"""Finds loops, cuts segments."""
