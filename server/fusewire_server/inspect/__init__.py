"""Inspection over HTTP: a snapshot, its publisher and the routes that show it."""
