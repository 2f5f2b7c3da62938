"""Tests of `fusewire_server.engine.transfers`."""
