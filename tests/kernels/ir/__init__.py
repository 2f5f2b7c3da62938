"""Tests of fusewire_kernels.ir."""
