"""The figures with limits."""
