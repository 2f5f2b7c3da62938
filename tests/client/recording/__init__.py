"""Tests of `fusewire._recording`."""
