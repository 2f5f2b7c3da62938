"""Starts, tells and hears child processes."""
