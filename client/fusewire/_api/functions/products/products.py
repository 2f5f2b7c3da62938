"""Functions that multiply elements and add products of them."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any

from fusewire._api.array import Array
from fusewire._api.functions.arrangement.joining import stack
from fusewire._api.functions.arrangement.padding import pad
from fusewire._api.functions.arrangement.places import flip
from fusewire._api.functions.arrangement.shapes import moveaxis
from fusewire._api.functions.elementwise.choices import where
from fusewire._api.ops.filled import counted
from fusewire._api.ops.operands import arrays_of
from fusewire._api.ops.operations import axis_of, integers_of, take_places
from fusewire._errors import ArgumentError, ShapeError

__all__ = [
    "convolve",
    "correlate",
    "cross",
    "dot",
    "inner",
    "kron",
    "matvec",
    "outer",
    "tensordot",
    "vdot",
    "vecdot",
    "vecmat",
]


def dot(x1: Any, x2: Any, /) -> Array:
    """Returns the sums of products over the last axis of `x1` and the last but one of `x2`, or a vector's only one.

    Of two matrices that is `matmul`. A scalar multiplies all elements.
    """
    a, b = arrays_of(x1, x2)
    if not a.ndim or not b.ndim:
        return a * b
    return tensordot(a, b, axes=((-1,), (-2,))) if a.ndim > 1 and b.ndim > 2 else a @ b


def outer(x1: Any, x2: Any, /) -> Array:
    """Flattens `x1` and `x2`, and returns the product of each element of `x1` with each element of `x2`."""
    a, b = arrays_of(x1, x2)
    return a.reshape(-1, 1) * b.reshape(1, -1)


def tensordot(x1: Any, x2: Any, /, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Array:
    """Returns the sums of products over pairs of axes.

    `axes` is a number of axes, the last of `x1` and the first of `x2`, or the axes of each. Raises ShapeError if their
    lengths differ.
    """
    a, b = arrays_of(x1, x2)
    of_a, of_b = _summed_axes(a, b, axes)
    if [a.shape[axis] for axis in of_a] != [b.shape[axis] for axis in of_b]:
        raise ShapeError(f"tensordot of {a.shape} and {b.shape}: axes {of_a} and {of_b} differ in length")
    rows = [axis for axis in range(a.ndim) if axis not in of_a]
    columns = [axis for axis in range(b.ndim) if axis not in of_b]
    summed = math.prod(a.shape[axis] for axis in of_a)
    shape = [a.shape[axis] for axis in rows], [b.shape[axis] for axis in columns]
    left = a.transpose([*rows, *of_a]).reshape(math.prod(shape[0]), summed)
    right = b.transpose([*of_b, *columns]).reshape(summed, math.prod(shape[1]))
    return (left @ right).reshape([*shape[0], *shape[1]])


def _summed_axes(a: Array, b: Array, axes: Any) -> tuple[list[int], list[int]]:
    if isinstance(axes, Iterable):
        first, second = axes
        counted = [axis_of(each, a.ndim) for each in integers_of(first)]
        others = [axis_of(each, b.ndim) for each in integers_of(second)]
    else:
        count = operator.index(axes)
        if not 0 <= count <= min(a.ndim, b.ndim):
            raise ShapeError(f"tensordot over {count} axes of ranks {a.ndim} and {b.ndim}")
        counted, others = list(range(a.ndim - count, a.ndim)), list(range(count))
    if len(counted) != len(others):
        raise ShapeError(f"tensordot over {len(counted)} axes of one array and {len(others)} of the other")
    return counted, others


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Array:
    """Returns the sums of products along `axis`, of vectors that broadcast. Raises ShapeError for other lengths.

    Of complex numbers, those of `x1` are conjugated.
    """
    a, b = (moveaxis(each, axis, -1) for each in arrays_of(x1, x2))
    if a.shape[-1] != b.shape[-1]:
        raise ShapeError(f"vecdot of {a.shape[-1]} elements and {b.shape[-1]}")
    a = _conjugated(a)
    return (a[..., None, :] @ b[..., :, None])[..., 0, 0]


def inner(x1: Any, x2: Any, /) -> Array:
    """Returns the sums of products over the last axes; of a scalar, the product."""
    a, b = arrays_of(x1, x2)
    return tensordot(a, b, axes=((-1,), (-1,))) if a.ndim and b.ndim else a * b


def kron(x1: Any, x2: Any, /) -> Array:
    """Returns the Kronecker product: `x2` times each element of `x1`, in place of the element."""
    a, b = arrays_of(x1, x2)
    rank = max(a.ndim, b.ndim)
    shapes = [(1,) * (rank - each.ndim) + each.shape for each in (a, b)]
    blocks = a.reshape(*_beside(shapes[0], (1,) * rank)) * b.reshape(*_beside((1,) * rank, shapes[1]))
    return blocks.reshape([rows * inner for rows, inner in zip(*shapes, strict=True)])


def _beside(first: Sequence[int], second: Sequence[int]) -> list[int]:
    return [dim for pair in zip(first, second, strict=True) for dim in pair]


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Array:
    """Returns the vector products along `axis`, which has 3 elements. Raises ShapeError for another length."""
    a, b = (moveaxis(each, axis, -1) for each in arrays_of(x1, x2))
    if (a.shape[-1], b.shape[-1]) != (3, 3):
        raise ShapeError(f"cross takes vectors of 3 elements, not {a.shape[-1]} and {b.shape[-1]}")
    parts = [a[..., i] * b[..., j] - a[..., j] * b[..., i] for i, j in ((1, 2), (2, 0), (0, 1))]
    return moveaxis(stack(parts, axis=-1), -1, axis)


def convolve(x1: Any, x2: Any, /, mode: str = "full") -> Array:
    """Returns the convolution of two vectors.

    It computes each element as a product of two vectors, which takes as many elements of memory as both lengths
    multiplied. `mode` is "full", "same" (as many as the longer vector has) or "valid" (where both overlap fully).
    Raises ShapeError for another rank or an empty vector, and ArgumentError for another mode.
    """
    a, b = arrays_of(x1, x2)
    if a.ndim != 1 or b.ndim != 1 or not a.size or not b.size:
        raise ShapeError(f"convolve takes two vectors with elements, not {a.shape} and {b.shape}")
    longer, shorter = (a, b) if a.size >= b.size else (b, a)
    first, last = _kept(longer.size, shorter.size, mode)
    reach = shorter.size - 1
    session = longer.session
    places = counted(session, last - first).reshape(-1, 1) + counted(session, shorter.size) + first
    overlaps = (places >= reach) & (places < reach + longer.size)
    factors = where(overlaps, shorter[::-1], 0)  # an infinity must not meet the zeros of the padding
    elements = take_places(pad(longer, reach), places, 0)
    return (elements[..., None, :] @ factors[..., :, None])[..., 0, 0]


def correlate(x1: Any, x2: Any, /, mode: str = "valid") -> Array:
    """Returns the correlation of two vectors: the sums of products of `x1` and moved `x2`. `mode` is as in `convolve`.

    Of complex numbers, those of `x2` are conjugated. Raises ShapeError and ArgumentError as `convolve` does.
    """
    a, b = arrays_of(x1, x2)
    if b.size > a.size:
        return flip(_conjugated(correlate(b, a, mode)))
    return convolve(a, flip(_conjugated(b)), mode)


def _kept(longer: int, shorter: int, mode: str) -> tuple[int, int]:
    """Returns the first element of the full convolution that is kept, and the one behind the last."""
    if mode == "full":
        return 0, longer + shorter - 1
    if mode == "same":
        return (shorter - 1) // 2, (shorter - 1) // 2 + longer
    if mode == "valid":
        return shorter - 1, longer
    raise ArgumentError(f"convolve has no mode {mode!r}, but full, same and valid")


def vdot(x1: Any, x2: Any, /) -> Array:
    """Flattens both, and returns the sum of products. Raises ShapeError for other numbers of elements.

    Of complex numbers, those of `x1` are conjugated.
    """
    a, b = arrays_of(x1, x2)
    return _conjugated(a.reshape(-1)) @ b.reshape(-1)


def matvec(x1: Any, x2: Any, /) -> Array:
    """Returns the products of matrices and vectors, in batches that broadcast. Raises ShapeError for other lengths."""
    a, b = arrays_of(x1, x2)
    return (a @ b[..., None])[..., 0]


def vecmat(x1: Any, x2: Any, /) -> Array:
    """Returns the products of vectors and matrices, in batches that broadcast. Raises ShapeError for other lengths.

    Of complex numbers, those of `x1` are conjugated.
    """
    a, b = arrays_of(x1, x2)
    return (_conjugated(a)[..., None, :] @ b)[..., 0, :]


def _conjugated(x: Array) -> Array:
    return x.conj() if x.dtype.is_complex else x
