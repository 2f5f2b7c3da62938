"""Runs programs without a plan, op by op."""
