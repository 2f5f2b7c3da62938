"""The peers of the figures: bare gRPC, NumPy and torch."""
