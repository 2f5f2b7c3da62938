"""Tests of `fusewire._api.functions.elementwise`."""
