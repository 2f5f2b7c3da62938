"""Tests of fusewire_kernels.unfused."""
