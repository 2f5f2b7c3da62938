"""Loads a server."""
