"""The wire: streams and bulk transfer, over gRPC and local calls."""
