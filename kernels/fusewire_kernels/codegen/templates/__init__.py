"""Text of whole algorithms."""
