"""The peers that Fusewire is compared to: bare gRPC, NumPy and torch."""
