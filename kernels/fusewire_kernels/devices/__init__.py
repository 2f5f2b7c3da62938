"""The device interface and the backends behind it."""
