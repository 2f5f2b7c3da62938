"""Figures, timing and worker processes."""
