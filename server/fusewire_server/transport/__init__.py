"""Streams and bulk transfer, by gRPC and local calls."""
