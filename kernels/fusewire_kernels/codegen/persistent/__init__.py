"""Kernels of whole loops. Pure."""
