"""The text of kernels. Pure."""
