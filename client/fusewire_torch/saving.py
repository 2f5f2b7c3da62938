"""Saves, loads and copies tensors of the device, of whose storages PyTorch can read and write no bytes.

PyTorch saves, loads and deep-copies a tensor by the bytes of its storage. Ours has none on this machine, so these ways
get a branch for it; tensors of other devices take the way that they took.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from itertools import chain
from typing import Any

import torch

from fusewire_torch.device_module import set_device
from fusewire_torch.storage import DEVICE, Kernel, copied_storage, is_ours

_BEFORE_PYTORCHS = 19  # PyTorch asks the function of the lowest number first; its own for devices like ours has 23


def teach_saving() -> None:
    """Gives PyTorch's functions the branches."""
    tensor, storage = torch.Tensor, torch.UntypedStorage
    tensor._reduce_ex_internal = _saved_by_way_of_the_cpu(tensor._reduce_ex_internal)
    storage.__deepcopy__ = _copied_on_the_device(storage.__deepcopy__)
    torch.serialization.register_package(_BEFORE_PYTORCHS, lambda storage: None, _marked_for_the_device)
    torch._utils._rebuild_tensor = _moved_once_loaded(torch._utils._rebuild_tensor)
    for script in (torch.jit.ScriptModule, torch.jit.RecursiveScriptModule):  # neither has the other's methods
        for name in ("save", "save_to_buffer"):
            setattr(script, name, _of_the_cpu_alone(getattr(script, name), _tensors_of_module))
    torch.export.save = _of_the_cpu_alone(torch.export.save, lambda program: program.state_dict.values())


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


def _marked_for_the_device(storage: torch.UntypedStorage, location: str) -> torch.UntypedStorage | None:
    """Returns a storage that `torch.load` is to load to the device: the same one, for its bytes have no dtype yet.

    Raises RuntimeError for files of the format before PyTorch 1.6, whose tensors are made before their bytes are read.
    """
    if location.partition(":")[0] != DEVICE:
        return None
    set_device(location)
    if getattr(storage, "_torch_load_uninitialized", False):
        raise RuntimeError(
            f'a file of PyTorch 1.5 or older: load it with map_location="cpu", and move it to "{DEVICE}"'
        )
    storage.is_for_fusewire = True
    return storage


def _moved_once_loaded(rebuild: Any) -> Any:
    """Returns how a loaded tensor is made: one of a marked storage on the CPU, and then moved."""

    @wraps(rebuild)
    def rebuilt(storage: Any, *arguments: Any) -> torch.Tensor:
        tensor: torch.Tensor = rebuild(storage, *arguments)
        return tensor.to(DEVICE) if hasattr(storage._untyped_storage, "is_for_fusewire") else tensor

    return rebuilt


def _of_the_cpu_alone(save: Any, tensors_of: Callable[[Any], Iterable[torch.Tensor]]) -> Any:
    """Returns how a program of TorchScript or `torch.export` is saved, whose file would lack the elements of ours."""

    @wraps(save)
    def saved(program: Any, *arguments: Any, **options: Any) -> Any:
        if any(is_ours(each) for each in tensors_of(program)):
            raise RuntimeError(f'a program with tensors of "{DEVICE}" cannot be saved: trace or export it on the CPU')
        return save(program, *arguments, **options)

    return saved


def _tensors_of_module(module: torch.nn.Module) -> Iterable[torch.Tensor]:
    return chain(module.parameters(), module.buffers())


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
