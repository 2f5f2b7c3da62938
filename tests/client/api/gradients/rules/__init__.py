"""Tests of the derivatives of ops."""
