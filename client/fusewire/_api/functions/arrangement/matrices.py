"""Diagonals of matrices, and the triangles beside them."""

from __future__ import annotations

import operator
from typing import Any

from fusewire._api.array import Array
from fusewire._api.functions.elementwise.choices import where
from fusewire._api.ops.filled import counted, filled
from fusewire._api.ops.operands import asarray
from fusewire._api.ops.operations import axis_of
from fusewire._api.ops.strided import strides_of, view_of, with_view
from fusewire._errors import ShapeError

__all__ = ["diag", "diagflat", "diagonal", "trace", "tril", "triu"]


def tril(x: Any, /, k: int = 0) -> Array:
    """Returns matrices with zeros above the k-th diagonal. Raises ShapeError below rank 2."""
    given = _matrices(x, "tril")
    return where(_distance(given) <= operator.index(k), given, False)


def triu(x: Any, /, k: int = 0) -> Array:
    """Returns matrices with zeros below the k-th diagonal. Raises ShapeError below rank 2."""
    given = _matrices(x, "triu")
    return where(_distance(given) >= operator.index(k), given, False)


def diagonal(x: Any, /, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """Returns a diagonal of matrices that lie along two axes, as the last axis.

    A positive `offset` is above the main diagonal. Raises ShapeError below rank 2 or if the axes are one, and AxisError
    for an axis out of range.
    """
    given = _matrices(x, "diagonal")
    rows, columns = axis_of(axis1, given.ndim), axis_of(axis2, given.ndim)
    if rows == columns:
        raise ShapeError(f"diagonal takes two axes, not axis {rows} twice")
    others = [axis for axis in range(given.ndim) if axis not in (rows, columns)]
    strides = strides_of(given.shape)
    down, across = strides[rows], strides[columns]
    start, length = _begin(operator.index(offset), given.shape[rows], given.shape[columns], down, across)
    shape = [*[given.shape[axis] for axis in others], length]
    return view_of(given, shape, [*[strides[axis] for axis in others], down + across], start)


def diag(x: Any, /, k: int = 0) -> Array:
    """Returns the k-th diagonal of a matrix, or the matrix with a vector on it. Raises ShapeError for another rank."""
    given, above = asarray(x), operator.index(k)
    if given.ndim == 2:
        return diagonal(given, above)
    if given.ndim != 1:
        raise ShapeError(f"diag takes a matrix or a vector, not rank {given.ndim}")
    side = given.size + abs(above)
    start, length = _begin(above, side, side, side, 1)
    return with_view(filled(given.session, (side, side), 0, given.dtype), given, (length,), (side + 1,), start)


def diagflat(x: Any, /, k: int = 0) -> Array:
    """Returns a matrix with the elements of `x`, in row-major order, on its k-th diagonal."""
    return diag(asarray(x).reshape(-1), k)


def trace(x: Any, /, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Array:
    """Returns the sum of a diagonal, which is that of `diagonal`. Raises ShapeError below rank 2."""
    return diagonal(x, offset, axis1, axis2).sum(-1, dtype=dtype)


def _begin(above: int, rows: int, columns: int, down: int, across: int) -> tuple[int, int]:
    """Returns the first element and the length of a diagonal of a matrix with these distances of neighbours."""
    length = max(min(rows + min(above, 0), columns - max(above, 0)), 0)
    return (max(above, 0) * across + max(-above, 0) * down if length else 0), length


def _matrices(x: Any, name: str) -> Array:
    given = asarray(x)
    if given.ndim < 2:
        raise ShapeError(f"{name} takes rank 2 or more, not {given.ndim}")
    return given


def _distance(x: Array) -> Array:
    """Returns how far each place of the last two axes is above the main diagonal."""
    return counted(x.session, x.shape[-1]) - counted(x.session, x.shape[-2]).reshape(-1, 1)
