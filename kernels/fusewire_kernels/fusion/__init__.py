"""Decides what shares a kernel, and what a launch. Pure."""
