"""Tests of `fusewire._api.ops`."""
