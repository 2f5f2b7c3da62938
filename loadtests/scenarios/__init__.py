"""Programs of load tests."""
