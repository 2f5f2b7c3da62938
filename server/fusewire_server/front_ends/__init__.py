"""Processes that relay calls of gRPC to the engine."""
