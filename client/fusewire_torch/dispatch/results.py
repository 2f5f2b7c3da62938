"""Checks and writes the arrays that an op has computed to tensors that are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from fusewire import Array
from fusewire_torch.dispatch.overloads import Op
from fusewire_torch.dtypes import TORCH_OF
from fusewire_torch.storage import array_of, write

Compute = Callable[..., Any]  # from tensors and numbers to an array, or to a tuple or list of arrays


def check_first(first: torch.Tensor, array: Array) -> None:
    """Raises RuntimeError if an op may not write an array to its first operand."""
    if array.shape != first.shape:
        _check_in_place(first, array)
    _check_cast(first, array)


def into_given(compute: Compute, op: Op) -> Callable[..., Any]:
    """Returns the kernel that writes the op's results to the tensors that the caller gives."""
    count = len(op._schema.arguments)

    def kernel(*arguments: Any, **options: Any) -> Any:
        names = [name for name in options if name not in _names(op)]
        given = [*arguments[count:], *[options.pop(name) for name in names]]
        arrays = compute(*arguments[:count], **options)
        results = arrays if isinstance(arrays, tuple) else (arrays,)
        for tensor, array in zip(given, results, strict=True):
            _write_resized(tensor, array)
        return given[0] if len(given) == 1 else tuple(given)

    return kernel


def tensors_into_given(kernel: Callable[..., Any], op: Op) -> Callable[..., Any]:
    """Returns the kernel that writes the tensors that a decomposition returns to those that the caller gives."""

    def compute(*arguments: Any, **options: Any) -> Any:
        results = kernel(*arguments, **options)
        return tuple([array_of(each) for each in results]) if isinstance(results, tuple) else array_of(results)

    return into_given(compute, op)


def _names(op: Op) -> frozenset[str]:
    return frozenset(argument.name for argument in op._schema.arguments)


def _write_resized(tensor: torch.Tensor, array: Array) -> None:
    """Writes to a tensor that was given as `out`, whose shape becomes that of the array."""
    if tuple(tensor.shape) != array.shape:
        tensor.resize_(array.shape)
    _check_cast(tensor, array)
    write(tensor, array)


def _check_in_place(tensor: torch.Tensor, array: Array) -> None:
    if len(array.shape) >= tensor.dim():
        raise RuntimeError(
            f"output with shape {list(tensor.shape)} doesn't match the broadcast shape {list(array.shape)}"
        )


def _check_cast(tensor: torch.Tensor, array: Array) -> None:
    given = TORCH_OF[array.dtype]
    if given is not tensor.dtype and not torch.can_cast(given, tensor.dtype):
        names = [str(dtype).removeprefix("torch.") for dtype in (given, tensor.dtype)]
        raise RuntimeError(f"result type {names[0]} can't be cast to the desired output type {names[1]}")
