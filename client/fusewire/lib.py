"""What NumPy has in `numpy.lib`: `fusewire.lib.stride_tricks`."""

from fusewire._api import stride_tricks

__all__ = ["stride_tricks"]
