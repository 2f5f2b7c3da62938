"""One element from many, and order."""

from fusewire_torch.kernels.reduction import ordering, reductions

TABLES = tuple(module.TABLE for module in (ordering, reductions))
