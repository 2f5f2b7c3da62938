"""Points that are evenly spaced by their logarithms, points of a grid, and indices of parts of arrays.

Indices that follow from shapes stay on this machine, as NumPy's arrays: there they cost no round trip.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fusewire._api.array import Array
from fusewire._api.catalogue.catalogued import power
from fusewire._api.functions.arrangement.joining import concat, stack
from fusewire._api.functions.arrangement.shapes import atleast_1d, broadcast_to, shape
from fusewire._api.functions.creation.creation import ShapeLike, arange, linspace
from fusewire._api.functions.ordering.selection import flatnonzero
from fusewire._api.ops.operands import arrays_of, asarray
from fusewire._api.ops.operations import astype, shape_of
from fusewire._errors import ArgumentError, ShapeError
from fusewire_protos.ops import dtypes

__all__ = [
    "c_",
    "diag_indices",
    "diag_indices_from",
    "geomspace",
    "indices",
    "ix_",
    "logspace",
    "meshgrid",
    "mgrid",
    "ogrid",
    "r_",
    "ravel_multi_index",
    "tril_indices",
    "tril_indices_from",
    "triu_indices",
    "triu_indices_from",
    "unravel_index",
]


def logspace(
    start: float, stop: float, num: int = 50, *, endpoint: bool = True, base: float = 10.0, dtype: Any = None
) -> Array:
    """Returns `num` points from `base` to the power of `start` to that of `stop`, by default in float64."""
    points = power(float(base), linspace(start, stop, num, endpoint=endpoint))
    return points if dtype is None else astype(points, dtype, copy=False)


def geomspace(start: float, stop: float, num: int = 50, *, endpoint: bool = True, dtype: Any = None) -> Array:
    """Returns `num` points from `start` to `stop`, each the same multiple of the one before, by default in float64.

    The ends are exact. Raises ArgumentError if one is 0, or if they have different signs.
    """
    first, last = float(start), float(stop)
    if not (math.isfinite(first - last) and math.copysign(1, first) == math.copysign(1, last) and first and last):
        raise ArgumentError(f"geomspace from {start} to {stop}: both ends are finite, not 0, and of one sign")
    sign = math.copysign(1.0, first)
    points = sign * logspace(math.log10(abs(first)), math.log10(abs(last)), num, endpoint=endpoint)
    if points.size:
        points[0] = first
    if endpoint and points.size > 1:
        points[-1] = last
    return points if dtype is None else astype(points, dtype, copy=False)


def meshgrid(*arrays: Any, indexing: str = "xy", sparse: bool = False) -> list[Array]:
    """Returns the coordinates of a grid from the coordinates along each axis.

    With `indexing` "ij" the i-th array lies along the i-th axis; with "xy" the first two axes are exchanged. With
    `sparse` they broadcast to the shape of the grid. Raises ShapeError above rank 1, and ArgumentError for another
    `indexing`.
    """
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f"meshgrid has no indexing {indexing!r}, but 'xy' and 'ij'")
    given = arrays_of(*arrays)
    if any(each.ndim > 1 for each in given):
        raise ShapeError(f"meshgrid takes vectors, not ranks {[each.ndim for each in given]}")
    axes = list(range(len(given)))
    if indexing == "xy":
        axes[:2] = axes[1::-1] if len(axes) > 1 else axes
    shape = [0] * len(given)
    for axis, each in zip(axes, given, strict=True):
        shape[axis] = each.size
    ones = (1,) * len(shape)
    thin = [each.reshape(*ones[:axis], each.size, *ones[axis + 1 :]) for axis, each in zip(axes, given, strict=True)]
    return thin if sparse else [broadcast_to(each, shape) for each in thin]


def indices(dimensions: ShapeLike, /, dtype: Any = dtypes.int64, *, sparse: bool = False) -> Any:
    """Returns the index along each axis, of all places of a shape: an array whose first axis counts the axes.

    With `sparse` they are a tuple of arrays that broadcast to the shape.
    """
    lengths = shape_of(dimensions)
    rank = len(lengths)
    thin = [
        arange(length, dtype=dtype).reshape((1,) * axis + (length,) + (1,) * (rank - axis - 1))
        for axis, length in enumerate(lengths)
    ]
    return tuple(thin) if sparse else stack([broadcast_to(each, lengths) for each in thin])


def ix_(*sequences: Any) -> tuple[Any, ...]:
    """Returns indices of the places where each axis has one of the given indices: x[fw.ix_([0, 2], [1, 3])].

    Booleans stand for the places where they are true. Raises ShapeError above rank 1.
    """
    places = [flatnonzero(each) if isinstance(each, Array) and each.dtype.is_boolean else each for each in sequences]
    ranks = [len(shape(each)) for each in places]
    if any(rank != 1 for rank in ranks):
        raise ShapeError(f"ix_ takes vectors, not ranks {ranks}")
    known = [np.empty(0) if isinstance(each, Array) else each for each in places]
    return tuple(
        each.reshape((1,) * axis + (each.size,) + (1,) * (len(places) - axis - 1))
        if isinstance(each, Array)
        else of_numpy
        for axis, (each, of_numpy) in enumerate(zip(places, np.ix_(*known), strict=True))
    )


def diag_indices(n: int, /, ndim: int = 2) -> tuple[npt.NDArray[np.int64], ...]:
    """Returns the indices of the main diagonal of an array of `ndim` axes of length `n`."""
    return np.diag_indices(n, ndim)


def diag_indices_from(x: Any, /) -> tuple[npt.NDArray[np.int64], ...]:
    """Returns `diag_indices` of `x`. Raises ShapeError below rank 2, and unless all axes have one length."""
    lengths = shape(x)
    if len(lengths) < 2 or len(set(lengths)) > 1:
        raise ShapeError(f"diag_indices_from takes two axes or more of one length, not {lengths}")
    return diag_indices(lengths[0], len(lengths))


def tril_indices(n: int, /, k: int = 0, m: int | None = None) -> tuple[npt.NDArray[np.int64], ...]:
    """Returns the indices of the elements of a matrix of `n` rows and `m` columns that `tril` keeps."""
    return np.tril_indices(n, k, m)


def triu_indices(n: int, /, k: int = 0, m: int | None = None) -> tuple[npt.NDArray[np.int64], ...]:
    """Returns the indices of the elements of a matrix of `n` rows and `m` columns that `triu` keeps."""
    return np.triu_indices(n, k, m)


def tril_indices_from(x: Any, /, k: int = 0) -> tuple[npt.NDArray[np.int64], ...]:
    """Returns `tril_indices` of the matrix `x`. Raises ShapeError for another rank."""
    rows, columns = _sides(x, "tril_indices_from")
    return tril_indices(rows, k, columns)


def triu_indices_from(x: Any, /, k: int = 0) -> tuple[npt.NDArray[np.int64], ...]:
    """Returns `triu_indices` of the matrix `x`. Raises ShapeError for another rank."""
    rows, columns = _sides(x, "triu_indices_from")
    return triu_indices(rows, k, columns)


def _sides(x: Any, name: str) -> tuple[int, int]:
    lengths = shape(x)
    if len(lengths) != 2:
        raise ShapeError(f"{name} takes a matrix, not rank {len(lengths)}")
    return lengths[0], lengths[1]


class _Grid:
    """Coordinates by slices: start:stop:step, or start:stop:1j * number of points."""

    def __init__(self, numpys: Any) -> None:
        self._numpys = numpys

    def __getitem__(self, key: Any) -> Any:
        """Uploads what NumPy's object of this name gives: one array, or a tuple of them."""
        made = self._numpys[key]
        return tuple(map(asarray, made)) if isinstance(made, tuple) else asarray(made)


mgrid, ogrid = _Grid(np.mgrid), _Grid(np.ogrid)


class _Joined:
    """Joins what stands in brackets: arrays, numbers, and slices as in `mgrid`."""

    def __init__(self, *, in_columns: bool) -> None:
        self._in_columns = in_columns

    def __getitem__(self, key: Any) -> Array:
        """Joins vectors along the last axis. In columns, a vector is a column. Raises TypeError for a text."""
        given = key if isinstance(key, tuple) else (key,)
        if any(isinstance(each, str) for each in given):
            raise TypeError("texts that say how to join have no meaning here; write fw.concat or fw.stack")
        arrays = arrays_of(*[np.r_[each] if isinstance(each, slice) else each for each in given])
        parts = [atleast_1d(each) for each in arrays]
        if self._in_columns:
            parts = [part.reshape(-1, 1) if part.ndim == 1 else part for part in parts]
        return concat(parts, axis=-1 if self._in_columns else 0)


def unravel_index(x: Any, /, shape: ShapeLike) -> Any:
    """Returns the indices along each axis of an array of `shape` of the elements at `x` of the flat array: a tuple.

    Integers of this machine stay there. Raises ArgumentError for one of these that is out of range.
    """
    lengths = shape_of(shape)
    if not isinstance(x, Array):
        return np.unravel_index(x, lengths)
    places, rest = [], x
    for length in reversed(lengths):
        places.append(rest % length)
        rest = rest // length
    return tuple(places[::-1])


def ravel_multi_index(multi_index: Sequence[Any], /, dims: ShapeLike) -> Any:
    """Returns the index in the flat array of the elements at these indices along each axis of an array of `dims`.

    Integers of this machine stay there. Raises ArgumentError for a wrong number of axes, and NumPy's ValueError for
    one of these that is out of range.
    """
    lengths = shape_of(dims)
    if len(multi_index) != len(lengths):
        raise ArgumentError(f"{len(multi_index)} indices do not fit {len(lengths)} axes")
    if not any(isinstance(each, Array) for each in multi_index):
        return np.ravel_multi_index(tuple(multi_index), lengths)
    place: Any = 0
    for each, length in zip(multi_index, lengths, strict=True):
        place = place * length + each
    return place


r_, c_ = _Joined(in_columns=False), _Joined(in_columns=True)
