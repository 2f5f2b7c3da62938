"""Steps recorded once."""
