"""Kernels of loops. Pure."""
