"""Runs programs op by op."""
