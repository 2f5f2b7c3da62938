"""Tensors that are made, copied and drawn on the device beside those of the CPU."""
