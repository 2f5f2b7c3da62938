"""Windows and samples."""

from fusewire_torch.kernels.images import convolution, fractional_pools, grids, pools, resampling

TABLES = tuple(module.TABLE for module in (convolution, fractional_pools, grids, pools, resampling))
