"""Tests of `fusewire._api.functions.creation`."""
