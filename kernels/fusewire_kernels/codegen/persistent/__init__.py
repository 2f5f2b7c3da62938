"""Kernels that run whole loops. Pure."""
