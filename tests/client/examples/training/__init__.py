"""Tests of `fusewire.examples.training`."""
