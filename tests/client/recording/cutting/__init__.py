"""Tests of `fusewire._recording.cutting`."""
