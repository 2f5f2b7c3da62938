"""Files of sessions' streams."""
