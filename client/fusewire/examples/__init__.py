"""What `fusewire demo` runs: a network that learns to read handwritten digits, on one client and on several at once."""
