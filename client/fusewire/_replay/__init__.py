"""Recorded streams."""
