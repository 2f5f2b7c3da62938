"""Results: JSON, summary, bounds, comparison, HTML."""
