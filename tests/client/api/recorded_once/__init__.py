"""Tests of `fusewire._api.recorded_once`."""
