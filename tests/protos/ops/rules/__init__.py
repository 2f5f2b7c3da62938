"""Tests of `fusewire_protos.ops`."""
