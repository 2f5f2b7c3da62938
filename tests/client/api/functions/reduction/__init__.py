"""Tests of `fusewire._api.functions.reduction`."""
