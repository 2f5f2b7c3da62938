"""Dtypes and shapes of results."""
