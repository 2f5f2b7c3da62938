"""What tensors see of elements in another form: bits of another dtype, parts of complex numbers, conjugates put off.

The array of a complex storage is two real arrays. A real tensor over such a storage, and a complex one over a real
storage, count its elements in another unit, with the two parts of a number side by side.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch

from fusewire import Array
from fusewire._api.complex.complex_array import ComplexArray
from fusewire._api.ops.strided import view_of, with_view
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType


def as_dtype(array: Array, dtype: DType) -> Array:
    """Returns an array in a dtype. Of complex numbers, a real dtype keeps the real part, with PyTorch's warning."""
    if array.dtype is dtype:
        return array
    if array.dtype.is_complex and not dtype.is_complex and dtype.name != "bool":
        warnings.warn("Casting complex values to real discards the imaginary part", stacklevel=2)
        return array.real.astype(dtype, copy=False)
    return array.astype(dtype)


def conjugated(tensor: torch.Tensor, array: Array) -> Array:
    """Returns what a tensor shows of its elements, or its elements from what it shows.

    PyTorch puts off conjugations and negations of views of complex numbers: it only notes them at the tensor.
    """
    if tensor.is_conj():
        array = array.conj()
    return -array if tensor.is_neg() else array


def seen_across(base: Array, dtype: DType, shape: tuple[int, ...], strides: Sequence[int], offset: int) -> Array:
    """Returns what a tensor sees of elements of another dtype than its own."""
    if dtype.is_complex and base.dtype is dtypes.part_of(dtype):
        twice = [2 * step for step in strides]
        return ComplexArray(*[view_of(base, shape, twice, 2 * offset + part) for part in (0, 1)])
    halves = _halves(shape, strides)
    if isinstance(base, ComplexArray) and dtype is dtypes.part_of(base.dtype) and halves is not None:
        return view_of(base.parts[offset % 2], shape, halves, offset // 2)
    return view_of(base.reshape(-1).view(dtype), shape, strides, offset)


def written_across(base: Array, array: Array, shape: tuple[int, ...], strides: Sequence[int], offset: int) -> Array:
    """Returns the elements of a storage after a write to a tensor of another dtype, that of `array`."""
    if isinstance(array, ComplexArray) and base.dtype is dtypes.part_of(array.dtype):
        twice = [2 * step for step in strides]
        for number, part in enumerate(array.parts):
            base = with_view(base, part, shape, twice, 2 * offset + number)
        return base
    halves = _halves(shape, strides)
    if isinstance(base, ComplexArray) and array.dtype is dtypes.part_of(base.dtype) and halves is not None:
        parts = [*base.parts]
        parts[offset % 2] = with_view(parts[offset % 2], array, shape, halves, offset // 2)
        return ComplexArray(*parts)
    seen = with_view(base.reshape(-1).view(array.dtype), array, shape, strides, offset)
    return seen.view(base.dtype).reshape(base.shape)


def _halves(shape: tuple[int, ...], strides: Sequence[int]) -> list[int] | None:
    """Returns the strides in complex numbers of a tensor that sees one part of each, or None if it sees both."""
    steps: list[Any] = [step if length > 1 else 0 for length, step in zip(shape, strides, strict=True)]
    return None if any(step % 2 for step in steps) else [step // 2 for step in steps]
