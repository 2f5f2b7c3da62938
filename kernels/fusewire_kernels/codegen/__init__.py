"""Generates the text of kernels: one body for every dialect. Pure."""
