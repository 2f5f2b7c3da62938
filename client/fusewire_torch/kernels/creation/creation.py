"""New tensors: undefined ones, filled ones, ranges."""

from __future__ import annotations

from math import prod
from typing import Any

import torch

import fusewire as fw
from fusewire import Array
from fusewire._api.ops.filled import filled
from fusewire._recording.recorded_ops import known_call
from fusewire_protos.ops.dtypes import DType
from fusewire_torch.connection import CONNECTION, session
from fusewire_torch.dtypes import fusewire_of
from fusewire_torch.promotion import number_of
from fusewire_torch.storage import array_of, dense_strides, elements_for, empty_tensor, is_ours, restrided, write
from fusewire_torch.table import Table

TABLE = Table()


@TABLE.kernel("empty.memory_format")
def _empty(
    size: Any,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    memory_format: Any = None,
) -> torch.Tensor:
    _check_device(device)
    return empty_tensor(tuple(size), dtype or torch.get_default_dtype())


def _check_device(device: Any) -> None:
    """Raises RuntimeError for another device than the one that there is, as PyTorch's other devices do."""
    if device is not None and device.index:
        raise RuntimeError(
            f'device "fusewire" has one device, fusewire:0; it was asked for {device}. Tensors of another session are '
            "made after another connect(), and cannot meet these"
        )


@TABLE.kernel("empty_strided")
def _empty_strided(
    size: Any,
    stride: Any,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> torch.Tensor:
    _check_device(device)
    shape, strides = tuple(size), tuple(stride)
    chosen = dtype or torch.get_default_dtype()
    if strides == dense_strides(shape) or not prod(shape):
        return empty_tensor(shape, chosen)
    elements = 1 + sum((length - 1) * step for length, step in zip(shape, strides, strict=True))
    return restrided(empty_tensor((elements,), chosen), shape, strides, 0)


@TABLE.kernel("fill_.Scalar", "fill_.Tensor")
def _fill(x: torch.Tensor, value: Any) -> torch.Tensor:
    if isinstance(value, torch.Tensor) and is_ours(value):
        return write(x, fw.broadcast_to(array_of(value), tuple(x.shape)))
    number = number_of(value)
    if not (x.dtype.is_floating_point or x.dtype.is_complex):
        number = bool(number) if x.dtype is torch.bool else int(number)
    return write(x, _filled(CONNECTION.something(), tuple(x.shape), number, fusewire_of(x.dtype)))


@known_call
def _filled(beside: Array, shape: tuple[int, ...], number: Any, dtype: DType) -> Array:
    return filled(beside.session, shape, number, dtype)


@TABLE.kernel("zero_")
def _zero(x: torch.Tensor) -> torch.Tensor:
    return _fill(x, 0)


@TABLE.kernel("arange.start_out")
def _arange(start: Any, end: Any, step: Any = 1, *, out: torch.Tensor) -> torch.Tensor:
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if out.dtype is torch.int64:  # PyTorch counts the elements of no other dtype by integers
        start, end, step = int(start), int(end), int(step)
    array = fw.arange(start, end, step, dtype=fusewire_of(out.dtype), device=session())
    if tuple(out.shape) != array.shape:
        out.resize_(array.shape)
    return write(out, array)


@TABLE.kernel("linspace.out")
def _linspace(start: Any, end: Any, steps: int, *, out: torch.Tensor) -> torch.Tensor:
    dtype = fusewire_of(out.dtype)
    array = fw.linspace(
        number_of(start), number_of(end), steps, dtype=dtype if dtype.is_floating else "float64", device=session()
    ).astype(dtype, copy=False)  # integers are rounded towards zero
    if tuple(out.shape) != array.shape:
        out.resize_(array.shape)
    return write(out, array)


@TABLE.kernel("logspace.out")
def _logspace(start: Any, end: Any, steps: int, base: float = 10.0, *, out: torch.Tensor) -> torch.Tensor:
    exponents = fw.linspace(number_of(start), number_of(end), steps, dtype="float64", device=session())
    array = (base**exponents).astype(fusewire_of(out.dtype))
    if tuple(out.shape) != array.shape:
        out.resize_(array.shape)
    return write(out, array)


@TABLE.kernel("_efficientzerotensor")
def _zeros(size: Any, *, dtype: torch.dtype | None = None, **options: Any) -> torch.Tensor:
    return empty_tensor(tuple(size), dtype or torch.get_default_dtype()).zero_()


@TABLE.kernel("_new_zeros_with_same_feature_meta")
def _zeros_laid_out_as(x: torch.Tensor, other: torch.Tensor, *, self_num_batch_dims: int = 0) -> torch.Tensor:
    """Returns zeros over a storage as long as that of `other`, by its strides: a tangent in forward differentiation.

    For each place along the first axes of `x`, which `vmap` has added, there is one such storage after another.
    """
    elements = elements_for(other.dtype, other.untyped_storage())
    batch = tuple(x.shape[:self_num_batch_dims])
    zeros = _zeros((prod(batch) * elements,), dtype=x.dtype)
    strides = (*(step * elements for step in dense_strides(batch)), *other.stride())
    return restrided(zeros, (*batch, *other.shape), strides, other.storage_offset())


@TABLE.kernel("eye.m_out")
def _eye(n: int, m: int, *, out: torch.Tensor) -> torch.Tensor:
    if tuple(out.shape) != (n, m):
        out.resize_((n, m))
    return write(out, fw.eye(n, m, dtype=fusewire_of(out.dtype), device=session()))
