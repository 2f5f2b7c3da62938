"""Where plans run: one interface, several backends."""
