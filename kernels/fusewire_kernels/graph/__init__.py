"""A program as a graph of primitive values, with views as addressing. Pure."""
