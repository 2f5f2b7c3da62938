"""Tests of `fusewire_server.inspect.snapshots`."""
