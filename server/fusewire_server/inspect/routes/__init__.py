"""Routes of inspection, by topic."""
