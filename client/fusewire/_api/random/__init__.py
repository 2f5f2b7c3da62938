"""Random numbers: keys, generators, functions."""
