"""Tests of `fusewire._recording.bodies`."""
