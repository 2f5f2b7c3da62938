"""Tests of what runs the steps of sessions."""
