"""Brings the operands of an elementwise op to the dtype in which PyTorch computes it.

PyTorch's rules differ from NumPy's: an int64 array with a float32 array gives float32, and an int64 array with a Python
float gives the default dtype. The rules themselves are PyTorch's own functions.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import _prims_common as prims

from fusewire import Array, DtypeError
from fusewire_protos.ops.dtypes import DType, bool_
from fusewire_torch.dtypes import fusewire_of
from fusewire_torch.storage import array_of, is_ours

Kind = prims.ELEMENTWISE_TYPE_PROMOTION_KIND


def promoted(operands: tuple[Any, ...], kind: Any) -> tuple[list[Any], DType]:
    """Returns the operands as arrays and numbers in the dtype of the computation, and the dtype of the result.

    None stands for an operand that is left out, such as a bound of `clamp`.
    """
    values: list[Any] = []
    dtype, are_alike = None, True
    for operand in operands:
        value = operand
        if isinstance(operand, torch.Tensor):
            value = number_of(operand) if operand.is_cpu else array_of(operand)
        if isinstance(value, Array):
            are_alike = are_alike and (dtype is None or value.dtype is dtype)
            dtype = value.dtype
        values.append(value)
    are_alike = are_alike and not any(isinstance(each, complex) for each in values)
    if are_alike and dtype is not None and dtype.is_floating:  # nearly always; any number adapts to it
        return values, bool_ if kind is Kind.ALWAYS_BOOL else dtype
    computed, result = _dtypes(tuple([_kind_of(operand) for operand in operands if operand is not None]), kind)
    return [_converted(value, computed) for value in values], result


def as_result(array: Array, dtype: DType) -> Array:
    """Returns an array in the dtype of an op's result."""
    return array if array.dtype is dtype else array.astype(dtype)


def _kind_of(operand: Any) -> Any:
    """Returns what the rules see of an operand: dtype and whether it has axes, or the type of a number."""
    if isinstance(operand, torch.Tensor):
        return operand.dtype, operand.dim() > 0, is_ours(operand)
    return type(operand)


@cache
def _dtypes(kinds: tuple[Any, ...], kind: Any) -> tuple[DType, DType]:
    computed, result = prims.elementwise_dtypes(*[_example(each) for each in kinds], type_promotion_kind=kind)
    # Ops widen halves by themselves, and round each result to a half.
    is_of_floats = result.is_floating_point and computed.is_floating_point
    return fusewire_of(result if is_of_floats else computed), fusewire_of(result)


def _example(kind: Any) -> Any:
    """Returns an operand of a kind. A 0-dimensional tensor of the CPU is a number that PyTorch has wrapped."""
    if isinstance(kind, type):
        return kind(1)
    dtype, has_axes, is_of_device = kind
    if not is_of_device and not has_axes:
        return prims.dtype_to_type(dtype)(1)
    return torch.empty((1,) if has_axes else (), dtype=dtype, device="meta")


def _converted(value: Any, wanted: DType) -> Any:
    return value.astype(wanted) if isinstance(value, Array) and value.dtype is not wanted else value


def number_of(operand: Any) -> Any:
    """Returns a Python number that PyTorch has wrapped in a 0-dimensional tensor of the CPU."""
    if not isinstance(operand, torch.Tensor):
        return operand
    if operand.dim() or operand.device.type != "cpu":
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"fusewire:0 and {operand.device}!"
        )
    return operand.item()


def mask_of(tensor: torch.Tensor) -> Array:
    """Returns the elements of a mask. Raises DtypeError for one that is not of booleans."""
    if tensor.dtype is not torch.bool:
        raise DtypeError(f"a mask has the dtype torch.bool, not {tensor.dtype}")
    return array_of(tensor)
