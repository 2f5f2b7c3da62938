"""The loops that are measured: array code that every library runs."""
