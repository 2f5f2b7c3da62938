"""Tests of the SDK and the command line."""
