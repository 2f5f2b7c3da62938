"""Decides which ops share a kernel, and which kernels share a launch. Pure."""
