"""The system under test: server, sessions, loops."""
