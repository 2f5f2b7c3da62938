"""Tests of `fusewire_server.processes`."""
