"""Kernels that run all iterations of a loop. Pure."""
