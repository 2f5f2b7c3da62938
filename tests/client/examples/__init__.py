"""Tests of the demo: its data, its training, its processes and its report."""
