"""Threads that run steps."""
