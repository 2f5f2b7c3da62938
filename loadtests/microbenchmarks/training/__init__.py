"""PyTorch's training steps on the device "fusewire"."""
