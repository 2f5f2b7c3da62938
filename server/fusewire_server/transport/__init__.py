"""The wire: gRPC streams, bulk transfer, refusals and write deadlines."""
