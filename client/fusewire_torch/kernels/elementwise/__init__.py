"""An element from each place."""

from fusewire_torch.kernels.elementwise import foreach, optimizers, pointwise, scaling, special

TABLES = tuple(module.TABLE for module in (foreach, optimizers, pointwise, scaling, special))
