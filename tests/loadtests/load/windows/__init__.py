"""Tests of steps in windows of time."""
