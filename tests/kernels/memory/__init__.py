"""Tests of fusewire_kernels.memory."""
