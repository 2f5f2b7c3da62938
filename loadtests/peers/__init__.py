"""Peers: bare gRPC, NumPy, torch."""
