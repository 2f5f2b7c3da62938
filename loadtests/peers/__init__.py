"""Peers: gRPC, NumPy, JAX, CuPy."""
