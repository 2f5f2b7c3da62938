"""An element from each place."""

from fusewire_torch.kernels.elementwise import foreach, pointwise, scaling, special

TABLES = tuple(module.TABLE for module in (foreach, pointwise, scaling, special))
