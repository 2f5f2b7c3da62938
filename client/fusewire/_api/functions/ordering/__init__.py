"""Sorts, searches, selects."""
