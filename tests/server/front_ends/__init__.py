"""Tests of `fusewire_server.front_ends`."""
