"""The compiler, and the devices."""
