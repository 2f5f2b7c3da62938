"""Networks of the device beside those of the CPU."""
