"""Inspection over HTTP: snapshots, questions, metrics."""
