"""Tests of `fusewire.linalg`."""
