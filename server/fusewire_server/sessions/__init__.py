"""Tables of values, rows and answers. Pure."""
