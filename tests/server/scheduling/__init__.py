"""Tests of `fusewire_server.scheduling`."""
