"""The loops in torch."""
