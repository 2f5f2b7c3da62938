"""Tests of `fusewire._transport`."""
