"""Tokens, and the check of each call."""
