"""Calls over a Unix socket, without HTTP/2."""
