"""Where time goes."""
