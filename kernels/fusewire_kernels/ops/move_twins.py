"""Defines the NumPy twins of views, and of ops that move or create elements.

Indices of `take` are clamped to the first and last element; `one_hot` of a class that does not exist is all zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fusewire_kernels.ops import random_numbers
from fusewire_kernels.ops.conversions import cast, narrow, widen
from fusewire_kernels.ops.written_parts import Twin
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.op import Attributes
from fusewire_protos.ops.shapes import Region
from fusewire_protos.ops.strided import Strided


def region_index(rank: int, attributes: Attributes, starts: Sequence[int]) -> tuple[Any, ...]:
    """The index expression of the region that begins at `starts`. Its result is a view even if the rank is 0."""
    region = Region(*attributes)
    index: list[Any] = [slice(None)] * rank
    for axis, length, step, start in zip(region.axes, region.lengths, region.steps, starts, strict=True):
        index[axis] = start if axis in region.dropped else _slice_of(start, length, step)
    return (*index, ...)


def _slice_of(start: int, length: int, step: int) -> slice:
    if length == 0:
        return slice(0, 0)
    stop = start + length * step
    return slice(start, None if stop < 0 else stop, step)


def _take_along_axis(library: Any, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int]) -> Any:
    array, indices = operands
    (axis,) = attributes
    clamped = library.clip(indices, 0, max(array.shape[axis] - 1, 0))
    return library.take_along_axis(array, clamped, axis=axis)


def _reshape(library: Any, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int]) -> Any:
    return operands[0].reshape(attributes[0])


def _transpose(library: Any, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int]) -> Any:
    return library.transpose(operands[0], attributes[0])


def _broadcast_to(library: Any, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int]) -> Any:
    return library.broadcast_to(operands[0], attributes[0])


def _slice(library: Any, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int]) -> Any:
    (array,) = operands
    return array[region_index(array.ndim, attributes, starts)]


def _strided(library: Any, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int]) -> Any:
    (array,) = operands
    return _strided_view(library, array.reshape(-1), attributes, starts)


def _strided_view(library: Any, line: Any, attributes: Attributes, starts: Sequence[int]) -> Any:
    """The view of a vector that strides describe: it shares the vector's memory."""
    part = Strided(*attributes)
    if 0 in part.shape:
        return line[:0].reshape(part.shape)
    (start,), (step,) = starts, line.strides
    return library.lib.stride_tricks.as_strided(line[start:], part.shape, [stride * step for stride in part.strides])


def _assign_slice(library: Any, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int]) -> Any:
    target, value = operands
    result = target.copy()
    result[region_index(target.ndim, attributes, starts)] = value
    return result


def _assign_strided(library: Any, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int]) -> Any:
    target, value = operands
    result = target.copy()
    _strided_view(library, result.reshape(-1), attributes, starts)[...] = value
    return result


def _concatenate(library: Any, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int]) -> Any:
    return library.concatenate(operands, axis=attributes[0])


def _take(library: Any, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int]) -> Any:
    array, indices = operands
    (axis,) = attributes
    clamped = library.clip(indices, 0, max(array.shape[axis] - 1, 0))
    return library.take(array, clamped, axis=axis)


def _one_hot(library: Any, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int]) -> Any:
    (indices,) = operands
    classes, code = attributes
    hits = indices[..., None] == library.arange(classes, dtype="int64")
    return cast(library, hits, dtypes.bool_, dtypes.from_code(code))


def _full(library: Any, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int]) -> Any:
    return library.broadcast_to(operands[0], attributes[0]).copy()


def _arange(library: Any, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int]) -> Any:
    """Halves are computed in float32 and rounded once."""
    length, code = attributes
    dtype = dtypes.from_code(code)
    start, step = (widen(library, operand, dtype) for operand in operands)
    numbers = cast(library, library.arange(length, dtype="int64"), dtypes.int64, dtype.accumulator)
    return narrow(library, library.add(start, library.multiply(numbers, step)), dtype)


def _linspace(library: Any, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int]) -> Any:
    length, code = attributes
    start, step = operands
    points = start + library.arange(length, dtype="float64") * step
    return cast(library, points, dtypes.float64, dtypes.from_code(code))


def _eye(library: Any, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int]) -> Any:
    rows, columns, diagonal, code = attributes
    hits = library.arange(rows, dtype="int64")[:, None] + diagonal == library.arange(columns, dtype="int64")
    return cast(library, hits, dtypes.bool_, dtypes.from_code(code))


def _random_bits(library: Any, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int]) -> Any:
    return random_numbers.random_bits(library, *operands, *attributes)


TWINS: dict[str, Twin] = {
    "take_along_axis": _take_along_axis,
    "reshape": _reshape,
    "transpose": _transpose,
    "broadcast_to": _broadcast_to,
    "slice": _slice,
    "strided": _strided,
    "assign_slice": _assign_slice,
    "assign_strided": _assign_strided,
    "concat": _concatenate,
    "take": _take,
    "one_hot": _one_hot,
    "full": _full,
    "arange": _arange,
    "linspace": _linspace,
    "eye": _eye,
    "random_bits": _random_bits,
}
