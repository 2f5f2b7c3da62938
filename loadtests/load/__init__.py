"""Puts load on a server, measured in windows of time."""
