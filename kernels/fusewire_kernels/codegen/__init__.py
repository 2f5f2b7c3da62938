"""Generates the text of kernels. Pure."""
