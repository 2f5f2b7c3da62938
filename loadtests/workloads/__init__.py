"""The loops of the microbenchmarks."""
