"""Kernels in CUDA. Pure."""
