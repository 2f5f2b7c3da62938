"""Programs as graphs of values. Pure."""
