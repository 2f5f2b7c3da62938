"""Registers the device "fusewire" with PyTorch. The only file that uses PyTorch's experimental interface for it."""

from __future__ import annotations

import torch
from torch.utils import backend_registration

from fusewire_torch import device_module
from fusewire_torch.storage import DEVICE


def register_device() -> None:
    """Gives the free dispatch key of PyTorch the name of the device, and makes `torch.fusewire`."""
    backend_registration._setup_privateuseone_for_python_backend(DEVICE, backend_module=device_module)
    # PyTorch asks C++ for these. Its timer of benchmarks calls the first wherever there is a device.
    torch.accelerator.synchronize = device_module.synchronize
    torch.accelerator.empty_cache = device_module.empty_cache
