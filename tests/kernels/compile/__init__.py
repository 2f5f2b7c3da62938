"""Tests of fusewire_kernels.compile."""
