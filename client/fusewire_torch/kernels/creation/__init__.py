"""New and copied tensors."""

from fusewire_torch.kernels.creation import copies, creation, random

TABLES = tuple(module.TABLE for module in (copies, creation, random))
