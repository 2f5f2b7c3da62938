"""Sessions as tables of values, rows and answers. Pure."""
