"""Tests of the records of launches."""
