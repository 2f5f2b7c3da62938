"""Decides which rows go next and what may overtake. Pure."""
