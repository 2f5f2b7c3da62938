"""Recorded bodies."""
