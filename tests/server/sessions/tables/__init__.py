"""Tests of `fusewire_server.sessions.tables`."""
