"""Tests of code generation."""
