"""Ops of the device, by topic, beside those of the CPU."""
