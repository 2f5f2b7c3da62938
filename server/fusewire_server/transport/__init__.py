"""The wire: gRPC streams and bulk transfer."""
