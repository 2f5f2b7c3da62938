"""Tests of `fusewire_server.inspect.routes`."""
