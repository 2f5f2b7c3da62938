"""Loops in torch."""
