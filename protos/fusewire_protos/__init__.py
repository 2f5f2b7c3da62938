"""What client and server share."""
