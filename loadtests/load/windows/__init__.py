"""Windows of time. Pure."""
