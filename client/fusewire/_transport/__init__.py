"""Carries frames and bulk bytes: the interface, gRPC, tokens and HTTP inspection."""
