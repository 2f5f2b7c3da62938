"""Tests of `fusewire_server.transport`."""
