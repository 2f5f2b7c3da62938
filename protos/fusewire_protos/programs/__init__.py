"""A program as data, and its codec."""
