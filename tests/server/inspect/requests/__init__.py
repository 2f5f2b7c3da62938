"""Tests of `fusewire_server.inspect.requests`."""
