"""A program as a graph of primitive values. Pure."""
