"""The server under load."""
