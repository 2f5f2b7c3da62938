"""Agents wait for answers."""
