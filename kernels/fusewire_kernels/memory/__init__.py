"""Lifetimes, the arena, donation. Pure."""
