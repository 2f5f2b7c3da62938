"""The programs that load tests run."""
