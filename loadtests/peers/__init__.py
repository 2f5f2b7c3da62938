"""The peers: bare gRPC, NumPy and torch."""
