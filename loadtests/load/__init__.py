"""Puts load on a server, in windows of time."""
