"""The system under test: a server, sessions on it, and loops that run there."""
