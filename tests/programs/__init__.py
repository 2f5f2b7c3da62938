"""Programs of NumPy as people write them: each runs unchanged on Fusewire."""
