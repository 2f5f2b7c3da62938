"""Tests of `fusewire_server.host`."""
