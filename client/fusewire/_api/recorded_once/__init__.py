"""Loops and functions."""
