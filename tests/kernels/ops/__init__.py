"""Tests of fusewire_kernels.ops."""
