"""Tests of `fusewire_protos.programs`."""
