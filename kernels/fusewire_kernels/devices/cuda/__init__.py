"""The CUDA backend: launches, graphs, transfers."""
