"""Tests of `fusewire_server.access`."""
