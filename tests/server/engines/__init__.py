"""Tests of `fusewire_server.engines`."""
