"""Tokens, checks of calls."""
