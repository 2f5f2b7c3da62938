"""Tests of fusewire_kernels.fusion."""
