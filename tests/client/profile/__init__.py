"""Tests of `fusewire._profile`."""
