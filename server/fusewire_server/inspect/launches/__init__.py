"""Launches, summed up. Pure."""
