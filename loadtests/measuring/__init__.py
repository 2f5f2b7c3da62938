"""Figures, timing, workers."""
