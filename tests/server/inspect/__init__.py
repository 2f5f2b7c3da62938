"""Tests of the picture the server publishes and of the routes that show it."""
