"""Inspection over HTTP."""
