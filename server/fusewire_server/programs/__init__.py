"""Known programs. Pure."""
