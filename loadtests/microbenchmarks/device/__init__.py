"""Device time and memory."""
