"""Decides which rows go next and which orders may overtake others. Pure."""
