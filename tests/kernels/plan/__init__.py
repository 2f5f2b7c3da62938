"""Tests of fusewire_kernels.plan."""
