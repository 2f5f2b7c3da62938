"""Tests of `fusewire_server.config`."""
