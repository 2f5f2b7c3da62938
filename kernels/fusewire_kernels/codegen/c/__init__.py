"""Kernels in C. Pure."""
