"""Moves and picks elements."""

from fusewire_torch.kernels.arrangement import indexing, rearranging, scattering, views

TABLES = tuple(module.TABLE for module in (indexing, rearranging, scattering, views))
