"""Gradients of users' functions."""
