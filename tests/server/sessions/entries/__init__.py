"""Tests of `fusewire_server.sessions.entries`."""
