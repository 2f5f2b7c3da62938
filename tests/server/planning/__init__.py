"""Tests of `fusewire_server.planning`."""
