"""Kernels as data. Pure.

Fusion decides the data, and code generation reads them. Neither imports the other.
"""
