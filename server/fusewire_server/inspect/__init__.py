"""Inspection over HTTP: snapshots and the application."""
