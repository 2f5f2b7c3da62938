"""Plugins of pytest: each runs in the process of a suite, where this folder is on the path."""
