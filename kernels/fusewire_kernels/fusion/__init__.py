"""What shares a kernel, and what a launch. Pure."""
