"""The tests, in folders that mirror the sources."""
