"""Round trips, many sessions."""
