"""Explains why a connection fails."""
