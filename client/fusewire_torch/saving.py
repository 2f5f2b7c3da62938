"""Saves and copies tensors of the device, of whose storages PyTorch can read no bytes.

PyTorch saves and deep-copies a tensor by the bytes of its storage. Ours has none on this machine, so two methods get a
branch for it; tensors of other devices take the way that they took.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

import torch

from fusewire_torch.storage import DEVICE, Kernel, copied_storage, is_ours


def teach_saving() -> None:
    """Gives PyTorch's methods the branches."""
    tensor, storage = torch.Tensor, torch.UntypedStorage
    tensor._reduce_ex_internal = _saved_by_way_of_the_cpu(tensor._reduce_ex_internal)
    storage.__deepcopy__ = _copied_on_the_device(storage.__deepcopy__)


def _saved_by_way_of_the_cpu(reduce: Any) -> Any:
    """Returns how a tensor is pickled: one of ours as a tensor of the CPU and the name of the device.

    Two tensors that share a storage are two after they are loaded.
    """

    @wraps(reduce)
    def reduced(self: torch.Tensor, protocol: int) -> Any:
        if not is_ours(self):
            return reduce(self, protocol)
        saved = (self.detach().cpu(), self.dtype, str(self.device), self.requires_grad)
        return torch._utils._rebuild_device_tensor_from_cpu_tensor, saved

    return reduced


def _copied_on_the_device(deepcopy: Any) -> Any:
    """Returns how a storage is deep-copied: one of ours gets the array, which never changes."""
    copy = Kernel(copied_storage)

    @wraps(deepcopy)
    def copied(self: Any, memo: dict[Any, Any]) -> Any:
        if self.device.type != DEVICE:
            return deepcopy(self, memo)
        known = memo.setdefault("torch", {})
        if self._cdata not in known:
            known[self._cdata] = copy(self)
        return known[self._cdata]

    return copied
