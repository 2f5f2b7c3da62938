"""The device thread: orders in, work on the device, reports out."""
