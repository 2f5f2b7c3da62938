"""The device thread: orders in, reports out."""
