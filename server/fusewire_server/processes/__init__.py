"""Child processes."""
