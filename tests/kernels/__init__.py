"""Tests of the compiler and the devices."""
