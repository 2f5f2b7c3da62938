"""Processes that relay calls to engines."""
