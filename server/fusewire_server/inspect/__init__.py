"""Inspection over HTTP: an immutable snapshot, its publisher and the routes that show it."""
