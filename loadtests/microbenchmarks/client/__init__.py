"""Recording and sending."""
