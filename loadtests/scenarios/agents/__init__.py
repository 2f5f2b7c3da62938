"""Agents that wait."""
