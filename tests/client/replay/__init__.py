"""Tests of `fusewire._replay`."""
