"""NumPy's calls on our arrays."""
