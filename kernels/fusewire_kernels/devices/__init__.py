"""The device interface and its backends."""
