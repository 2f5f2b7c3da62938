"""The routes of inspection, by topic."""
