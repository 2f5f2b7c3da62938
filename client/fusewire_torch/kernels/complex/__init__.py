"""Complex tensors."""

from fusewire_torch.kernels.complex import fourier, parts

TABLES = tuple(module.TABLE for module in (fourier, parts))
