"""Peers: gRPC, NumPy, torch, JAX."""
