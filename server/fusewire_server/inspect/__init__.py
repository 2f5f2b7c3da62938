"""Inspection: what the server is doing, as one published picture and the routes that show it."""
