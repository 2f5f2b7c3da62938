"""Tests of `fusewire._api.protocols`."""
