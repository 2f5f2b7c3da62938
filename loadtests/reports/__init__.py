"""Results and their reports."""
