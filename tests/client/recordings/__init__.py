"""Tests of `fusewire._recordings`."""
