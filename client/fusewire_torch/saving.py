"""Saves and loads tensors of the device, of whose storages PyTorch can read and write no bytes.

PyTorch saves and loads a tensor by the bytes of its storage. Ours has none on this machine, so these ways get a branch
for it; tensors of other devices take the way that they took.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import wraps
from itertools import chain
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from fusewire_torch.device_module import set_device
from fusewire_torch.storage import DEVICE, is_ours

_BEFORE_PYTORCHS = 19  # PyTorch asks the function of the lowest number first; its own for devices like ours has 23
_SAVES_OF_SCRIPTS = frozenset(
    ("save", "save_to_buffer", "_save_for_lite_interpreter", "_save_to_buffer_for_lite_interpreter")
)


def teach_saving() -> None:
    """Gives PyTorch's functions the branches."""
    torch.Tensor._reduce_ex_internal = _saved_by_way_of_the_cpu(torch.Tensor._reduce_ex_internal)
    torch.serialization.register_package(_BEFORE_PYTORCHS, lambda storage: None, _marked_for_the_device)
    for name in ("_rebuild_tensor", "_rebuild_tensor_v3"):  # the second one for dtypes that are no storage's
        setattr(torch._utils, name, _moved_once_loaded(getattr(torch._utils, name)))
    torch._weights_only_unpickler._get_allowed_globals.cache_clear()  # it may keep the former ones
    torch.export.save = _of_the_cpu_alone(torch.export.save)
    for script in (torch.jit.ScriptModule, torch.jit.RecursiveScriptModule, torch.jit.ScriptFunction):
        for name in _SAVES_OF_SCRIPTS & {*dir(script)}:  # none of these classes has the other's methods
            setattr(script, name, _of_the_cpu_alone(getattr(script, name)))


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


def _of_the_cpu_alone(save: Any) -> Any:
    """Returns how a program of TorchScript or `torch.export` is saved, whose file would lack the elements of ours."""

    @wraps(save)
    def saved(*arguments: Any, **options: Any) -> Any:
        values = chain.from_iterable(map(_values_of, (*arguments, *options.values())))
        if any(isinstance(each, torch.Tensor) and is_ours(each) for each in values):
            raise RuntimeError(f'a program with tensors of "{DEVICE}" cannot be saved: trace or export it on the CPU')
        return save(*arguments, **options)

    return saved


def _values_of(given: Any) -> Iterable[Any]:
    """Returns the values that are saved with a program, of which some are tensors. What is no program has none."""
    if isinstance(given, torch.export.ExportedProgram):
        return (*given.state_dict.values(), *given.constants.values())
    if isinstance(given, torch.jit.ScriptFunction):
        return _constants_of(given)
    if isinstance(given, torch.jit.ScriptModule):
        parts = [each._c for each in given.modules() if isinstance(each, torch.jit.ScriptModule)]
        attributes = [part.getattr(name) for part in parts for name in _attributes_of(part)]
        methods = [part._get_method(name) for part in parts for name in part._method_names()]
        return chain(_held_by(attributes), *map(_constants_of, methods))
    return ()


def _attributes_of(part: Any) -> Iterable[str]:
    """Returns the names of parameters, buffers, and what else a scripted module holds, such as lists of tensors."""
    return [*torch._C.ConcreteModuleType.from_jit_type(part._type()).get_attributes()]


def _held_by(value: Any) -> Iterable[Any]:
    """Returns the values in a container, and in what it holds: other containers, and objects of scripted classes."""
    for leaf in tree_leaves(value):
        yield leaf
        if torch.jit._state._get_script_class(type(leaf)) is not None:
            yield from _held_by(vars(leaf))


def _constants_of(code: Any) -> Iterable[Any]:
    """Returns the values that are part of compiled code: tensors of a closure, and the weights of a frozen module."""
    graph = code.inlined_graph  # its nodes live as long as it does
    return [*tree_leaves([node.output().toIValue() for node in graph.findAllNodes("prim::Constant")])]
