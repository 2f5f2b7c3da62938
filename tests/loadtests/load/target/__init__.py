"""Tests of what describes the server under load."""
