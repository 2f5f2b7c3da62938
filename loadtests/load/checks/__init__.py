"""Checks what sessions read."""
