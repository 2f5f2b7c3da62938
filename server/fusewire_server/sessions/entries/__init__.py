"""Applies the entries of a frame. Pure."""
