"""Access control: the file of tokens, and the check of each call's token."""
