"""Decides which rows go next, how many may be outstanding, and who may overtake whom. Pure."""
