"""Tests of `fusewire._api.functions.products`."""
