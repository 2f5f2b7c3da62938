"""What Fusewire is compared to: bare gRPC, NumPy, and torch where there is a GPU."""
