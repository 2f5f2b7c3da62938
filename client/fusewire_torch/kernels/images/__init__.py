"""Windows and samples."""

from fusewire_torch.kernels.images import convolution, grids, pools, resampling

TABLES = tuple(module.TABLE for module in (convolution, grids, pools, resampling))
