"""Tests of `fusewire_server.programs`."""
