"""Inspection over HTTP: snapshot, publisher and routes."""
