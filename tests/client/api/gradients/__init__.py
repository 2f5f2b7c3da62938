"""Tests of `fusewire._api.gradients`."""
