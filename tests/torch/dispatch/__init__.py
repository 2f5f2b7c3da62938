"""From ATen's overloads to kernels."""
