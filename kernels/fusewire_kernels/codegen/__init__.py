"""From a kernel to its text: pure functions, one body for every dialect."""
