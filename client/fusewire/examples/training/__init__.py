"""Trains the demo's network."""
