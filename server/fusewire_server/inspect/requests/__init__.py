"""Who may ask, and refusals."""
