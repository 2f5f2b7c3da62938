"""Carries frames and large values."""
