"""Tests of `fusewire._api`."""
