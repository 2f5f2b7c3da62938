"""Tests of `fusewire._stream`."""
