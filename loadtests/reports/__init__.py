"""Results as reports."""
