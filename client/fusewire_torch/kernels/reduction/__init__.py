"""One element from many, and order."""

from fusewire_torch.kernels.reduction import histograms, ordering, reductions

TABLES = tuple(module.TABLE for module in (histograms, ordering, reductions))
