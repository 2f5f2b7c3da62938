"""Products and solvers."""

from fusewire_torch.kernels.linear_algebra import distances, factors, linalg, products

TABLES = tuple(module.TABLE for module in (distances, factors, linalg, products))
