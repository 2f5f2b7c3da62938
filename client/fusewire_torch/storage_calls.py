"""Calls of a storage of the device: those that need its bytes raise, because none of them are on this machine.

PyTorch's own methods reach for the memory of a storage, some without asking whether there is any, which ends the
process. `cpu` and `clone` work, and all that PyTorch builds on them. Storages of other devices are called as before.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch

from fusewire_torch.storage import DEVICE, Kernel, bytes_of, copied_storage, held, tensor_of

Storage = Any  # torch.UntypedStorage, which ships no types

_NEED_BYTES = (
    *("__getitem__", "__setitem__", "_byteswap", "_set_from_file", "_share_fd_cpu_", "_share_filename_cpu_"),
    *("_write_file", "data_ptr", "fill_", "new", "resize_"),
)
_PASS_MEMORY_ON = (
    *((torch.Tensor, "__dlpack__"), (torch.Tensor, "__dlpack_device__")),
    *((torch, "to_dlpack"), (torch.utils.dlpack, "to_dlpack")),
)


def teach_storages() -> None:
    """Gives PyTorch's methods of storages a branch for ours, and its ways to pass memory on a refusal."""
    kind = torch.UntypedStorage
    for name in _NEED_BYTES:
        _replace(kind, name, _refused(f"storage.{name}"))
    _replace(kind, "__len__", bytes_of)
    _replace(kind, "nbytes", bytes_of)
    _replace(kind, "__repr__", _shown)
    _replace(kind, "clone", Kernel(copied_storage))
    _replace(kind, "is_pinned", lambda storage, device=None: False)
    kind.copy_ = _copied_from_the_device(kind.copy_)
    kind.__new__ = _of_other_devices(kind.__new__)
    for owner, name in _PASS_MEMORY_ON:
        _replace(owner, name, _refused(name))


def _replace(owner: Any, name: str, ours: Callable[..., Any]) -> None:
    """Lets `ours` answer a function whose first argument is a storage or tensor of the device."""
    theirs = getattr(owner, name)

    @wraps(theirs)
    def answered(first: Any, *arguments: Any, **options: Any) -> Any:
        answer = ours if first.device.type == DEVICE else theirs
        return answer(first, *arguments, **options)

    setattr(owner, name, answered)


def _refusal(what: str) -> NotImplementedError:
    return NotImplementedError(
        f'{what}: device "{DEVICE}" has no memory on this machine. Read the bytes by x.cpu(); make, write, save and '
        "share tensors in place of storages"
    )


def _refused(what: str) -> Callable[..., Any]:
    def raising(*arguments: Any, **options: Any) -> Any:
        raise _refusal(what)

    return raising


def _shown(storage: Storage) -> str:
    return f"...\n[{torch.typename(storage)}(device={storage.device}) of size {len(storage)}]"


def _copied_from_the_device(copy: Any) -> Any:
    @wraps(copy)
    def copied(self: Storage, source: Storage, *options: Any, **named: Any) -> Storage:
        if self.device.type == DEVICE:
            raise _refusal("storage.copy_")
        return copy(self, _read(source) if source.device.type == DEVICE else source, *options, **named)

    return copied


def _read(storage: Storage) -> Storage:
    """Waits for the elements of a storage, and returns their bytes in a storage of the CPU."""
    array = held(storage).array
    return torch.UntypedStorage(bytes_of(storage)) if array is None else tensor_of(array).cpu().untyped_storage()


def _of_other_devices(make: Any) -> Any:
    @wraps(make)
    def made(cls: type, *arguments: Any, **options: Any) -> Storage:
        device = options.get("device")
        if device is not None and torch.device(device).type == DEVICE:
            raise _refusal(f'torch.UntypedStorage(device="{DEVICE}")')
        return make(cls, *arguments, **options)

    return made
