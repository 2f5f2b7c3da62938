"""Sessions as tables of values, rows and answers, and how frames change them. Pure."""
