"""Tests of `fusewire._api.catalogue`."""
