"""Tests of `fusewire_server.device.memory`."""
