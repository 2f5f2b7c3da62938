"""The peers of the figures: bare gRPC, NumPy, and torch where there is a GPU."""
