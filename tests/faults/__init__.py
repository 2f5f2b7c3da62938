"""Attackers of a server beside a quiet client. Each test bounds what an attack costs. Run by `make test-faults`."""
