"""Processes that relay calls of gRPC to engines."""
