"""Which rows go next, what may overtake. Pure."""
