"""Carries frames and large values: the interface, gRPC, tokens, inspection."""
