"""Tests of `fusewire._api.functions.arrangement`."""
