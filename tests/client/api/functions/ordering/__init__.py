"""Tests of `fusewire._api.functions.ordering`."""
