"""Tests of `fusewire_server.device.unfused`."""
