"""Finds the loop in a tape, and cuts segments."""
