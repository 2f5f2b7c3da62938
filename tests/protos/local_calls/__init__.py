"""Tests of `fusewire_protos.local_calls`."""
