"""Tests of the `fusewire` command."""
