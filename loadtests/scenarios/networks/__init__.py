"""Inference and training."""
