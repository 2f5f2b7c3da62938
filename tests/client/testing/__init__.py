"""Tests of what users test their own programs with."""
