"""Linear algebra of the device beside that of the CPU."""
