"""What an op does for which the device has no kernel: it raises, or runs on the CPU if the user asks for it."""

from __future__ import annotations

import os
import warnings
from typing import Any

import torch
from torch.utils._pytree import tree_map

from fusewire_torch.dispatch.overloads import Op
from fusewire_torch.storage import DEVICE, is_ours

SETTING = "FUSEWIRE_TORCH_FALLBACK"

_warned: set[str] = set()


def missing_op(op: Op, *arguments: Any, **options: Any) -> Any:
    """Runs an op on the CPU, or raises NotImplementedError with its name and the way out."""
    if os.environ.get(SETTING) != "1":
        raise NotImplementedError(
            f'{op.name()} is not implemented on device "fusewire"; move its operands to the CPU by x.cpu(), or set '
            f"{SETTING}=1 to have such ops run there"
        )
    if op.name() not in _warned:
        _warned.add(op.name())
        warnings.warn(f'{op.name()} runs on the CPU: device "fusewire" has no kernel for it', stacklevel=2)
    return _on_cpu(op, arguments, options)


def _on_cpu(op: Op, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    moved: list[tuple[torch.Tensor, torch.Tensor]] = []

    def to_cpu(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and is_ours(value):
            there = value.cpu()
            moved.append((value, there))
            return there
        return torch.device("cpu") if isinstance(value, torch.device) and value.type == DEVICE else value

    result = op(*tree_map(to_cpu, arguments), **tree_map(to_cpu, options))
    if op._schema.is_mutable:
        written = _written(op, arguments, options)
        for ours, there in moved:
            if any(ours is each for each in written):
                ours.copy_(there)
        owners = {id(there): ours for ours, there in moved}
        return tree_map(lambda value: owners.get(id(value), value), result)
    return tree_map(lambda value: value.to(DEVICE) if isinstance(value, torch.Tensor) else value, result)


def _written(op: Op, arguments: tuple[Any, ...], options: dict[str, Any]) -> list[Any]:
    """Returns the arguments to whose elements an op writes, lists of tensors flattened."""
    described = op._schema.arguments
    given = [*zip(described, arguments, strict=False), *((each, options.get(each.name)) for each in described)]
    written = [value for each, value in given if each.alias_info is not None and each.alias_info.is_write]
    return [tensor for value in written for tensor in (value if isinstance(value, list | tuple) else [value])]
