"""Turns what is wrong with an op into PyTorch's own error.

Programs and tests of PyTorch catch its types and look at its words. PyTorch checks an op of tensors without data as it
checks any other, so such an op tells what is wrong. It runs only after our own check has failed, or before a
decomposition that checks nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from fusewire import ArgumentError, AxisError, DtypeError, ShapeError
from fusewire_torch.dispatch.overloads import Op
from fusewire_torch.storage import DEVICE, is_ours

# What a caller can have got wrong. Other errors, such as that of a session that was lost, stay as they are.
_OF_CALLERS = (ArgumentError, AxisError, DtypeError, ShapeError, OverflowError)


def explained_by_torch(op: Op) -> Callable[..., Exception]:
    """Returns the function that finds PyTorch's error where a kernel of `op` has raised ours, for `storage.Kernel`."""

    def explained(arguments: Any, options: Any, error: Exception) -> Exception:
        return _error_of_torch(op, arguments, options, error) if isinstance(error, _OF_CALLERS) else error

    return explained


def checked_first(op: Op, compute: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function that does `compute`, and before it raises PyTorch's error for operands that `op` refuses."""

    @wraps(compute)
    def checked(*arguments: Any, **options: Any) -> Any:
        _without_elements(op, arguments, options)
        return compute(*arguments, **options)

    return checked


def _without_elements(op: Op, arguments: Any, options: Any) -> None:
    """Runs an op of tensors without data. Raises what PyTorch raises."""
    op(*tree_map(_without_data, arguments), **tree_map(_without_data, options))


def _error_of_torch(op: Op, arguments: Any, options: Any, error: Exception) -> Exception:
    """Returns the error that PyTorch raises for tensors like these, or RuntimeError with our own words."""
    try:
        _without_elements(op, arguments, options)
    except (RuntimeError, IndexError, TypeError, ValueError) as found:
        if not isinstance(found, NotImplementedError):
            return found
    if isinstance(error, DtypeError) and any(_is_complex(each) for each in tree_leaves((arguments, options))):
        return NotImplementedError(f'{op.name()} of complex numbers is not implemented on device "{DEVICE}": {error}')
    if isinstance(error, AxisError):
        return IndexError(f"Dimension out of range: {error}")
    return RuntimeError(str(error))


def _is_complex(value: Any) -> bool:
    return isinstance(value, complex) or (isinstance(value, torch.Tensor) and value.is_complex())


def _without_data(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and is_ours(value):
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    return torch.device("meta") if isinstance(value, torch.device) else value
