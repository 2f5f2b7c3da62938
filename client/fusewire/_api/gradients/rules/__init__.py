"""Derivatives of ops."""
