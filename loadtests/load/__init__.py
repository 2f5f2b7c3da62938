"""Puts load on a server."""
