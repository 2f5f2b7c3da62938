"""Tests of what checks the values that sessions read."""
