"""gRPC, NumPy, JAX, CuPy."""
