"""Access control: the token file, and the check of each call."""
