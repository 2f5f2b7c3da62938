"""Tests of fusewire_kernels.graph."""
