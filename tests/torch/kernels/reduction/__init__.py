"""One element from many, and order, on the device beside those of the CPU."""
