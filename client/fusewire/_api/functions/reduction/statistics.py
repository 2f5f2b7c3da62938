"""Statistics of elements, and their differences."""

from __future__ import annotations

import math
import operator
from typing import Any

from fusewire._api.array import Array
from fusewire._api.catalogue.catalogued import abs, max, min, sqrt  # noqa: A004  # the standard's names
from fusewire._api.complex.complex_array import ComplexArray
from fusewire._api.functions.arrangement.joining import concat
from fusewire._api.functions.arrangement.matrices import diagonal
from fusewire._api.functions.arrangement.shapes import atleast_2d, broadcast_to
from fusewire._api.functions.elementwise.choices import clip, where
from fusewire._api.functions.elementwise.complex_numbers import conj, real
from fusewire._api.functions.ordering.sorting import cumulative_sum
from fusewire._api.ops.operands import arrays_of, asarray
from fusewire._api.ops.operations import Axis, astype, axes_of, axis_of
from fusewire._errors import ArgumentError, ShapeError
from fusewire_protos.ops import dtypes

__all__ = [
    "average",
    "corrcoef",
    "count_nonzero",
    "cov",
    "diff",
    "ediff1d",
    "gradient",
    "ptp",
    "trapezoid",
    "unwrap",
]


def count_nonzero(x: Any, /, axis: Axis = None, *, keepdims: bool = False) -> Array:
    """Returns how many elements along `axis` are not 0, in int64."""
    return (asarray(x) != 0).sum(axis, keepdims=keepdims)


def ptp(x: Any, /, axis: Axis = None, *, keepdims: bool = False) -> Array:
    """Returns the greatest element along `axis` minus the least."""
    given = asarray(x)
    return max(given, axis, keepdims=keepdims) - min(given, axis, keepdims=keepdims)


def average(x: Any, /, axis: Axis = None, weights: Any = None, *, keepdims: bool = False) -> Array:
    """Returns the mean along `axis`, weighted by `weights`, which have the shape of `x` or are one for each place.

    Raises ShapeError for weights of another shape. Weights that add up to 0 give NaN or infinities.
    """
    if weights is None:
        return asarray(x).mean(axis, keepdims=keepdims)
    given, parts = arrays_of(x, weights)
    if parts.shape != given.shape:
        if parts.ndim != 1 or not isinstance(axis, int) or parts.size != given.shape[axis_of(axis, given.ndim)]:
            raise ShapeError(f"weights of shape {parts.shape} fit no axis {axis} of {given.shape}")
        behind = given.ndim - 1 - axis_of(axis, given.ndim)
        parts = broadcast_to(parts.reshape(parts.size, *(1,) * behind), given.shape)
    dtype = dtypes.quotient(dtypes.promote(given.dtype, parts.dtype))
    values, shares = (astype(each, dtype.accumulator, copy=False) for each in (given, parts))
    weighted = (values * shares).sum(axis, keepdims=keepdims) / shares.sum(axis, keepdims=keepdims)
    return astype(weighted, dtype, copy=False)


def diff(x: Any, /, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Array:
    """Returns the `n`-th differences of neighbours along `axis`; of booleans, whether neighbours differ.

    `prepend` and `append` come before and behind the elements; a scalar is one element. Raises ArgumentError for a
    negative `n`, and AxisError for an axis out of range.
    """
    if operator.index(n) < 0:
        raise ArgumentError(f"diff of order {n}: expected 0 or more")
    given = asarray(x)
    along = axis_of(axis, given.ndim)
    ends = [None if end is None else _end(given, end, along) for end in (prepend, append)]
    parts = [part for part in (ends[0], given, ends[1]) if part is not None]
    moved = concat(parts, axis=along) if len(parts) > 1 else given
    before = (slice(None),) * along
    for _ in range(n):
        later, earlier = moved[*before, 1:], moved[*before, :-1]
        moved = later != earlier if moved.dtype.is_boolean else later - earlier
    return moved.copy() if moved is x else moved


def _end(x: Array, end: Any, axis: int) -> Array:
    _, part = arrays_of(x, end)
    return part if part.ndim else broadcast_to(part, (*x.shape[:axis], 1, *x.shape[axis + 1 :]))


def cov(
    x: Any, y: Any = None, /, *, rowvar: bool = True, bias: bool = False, ddof: float | None = None, dtype: Any = None
) -> Array:
    """Returns the covariances of variables, by default in float64 or complex128, as NumPy does.

    A row is a variable, or with `rowvar=False` a column. The sums are divided by the number of observations less
    `ddof`, which is 1, or with `bias` 0. `y` holds more variables. Raises ShapeError above rank 2.
    """
    given = [atleast_2d(each) for each in (arrays_of(x) if y is None else arrays_of(x, y))]
    if any(each.ndim > 2 for each in given):
        raise ShapeError(f"cov takes ranks up to 2, not {[each.ndim for each in given]}")
    rows = [each if rowvar or each.shape[0] == 1 else each.T for each in given]
    joined = rows[0] if len(rows) == 1 else concat(rows)
    wanted = dtypes.promote(joined.dtype, dtypes.float64) if dtype is None else dtype
    wide = astype(joined, wanted, copy=False)
    degrees = wide.shape[1] - ((0 if bias else 1) if ddof is None else ddof)
    distance = wide - wide.mean(1, keepdims=True)
    result = (distance @ conj(distance).T) * (1 / degrees if degrees > 0 else math.nan)
    return result.reshape(()) if result.shape == (1, 1) else result


def corrcoef(x: Any, y: Any = None, /, *, rowvar: bool = True, dtype: Any = None) -> Array:
    """Returns the correlations of variables, from −1 to 1. The parameters are those of `cov`."""
    covariance = cov(x, y, rowvar=rowvar, dtype=dtype)
    if not covariance.ndim:
        return covariance / covariance
    spread = sqrt(real(diagonal(covariance)))
    found = covariance / spread.reshape(-1, 1) / spread
    if isinstance(found, ComplexArray):
        return ComplexArray(*[clip(part, -1.0, 1.0) for part in found.parts])
    return clip(found, -1.0, 1.0)


def ediff1d(x: Any, /) -> Array:
    """Returns the differences of neighbours of the flattened array."""
    return diff(asarray(x).reshape(-1))


def trapezoid(y: Any, /, x: Any = None, dx: float = 1.0, axis: int = -1) -> Array:
    """Returns the integral of `y` along `axis` by the trapezoidal rule, at the points `x`, or at points `dx` apart.

    `x` is a vector, or has the shape of `y`.
    """
    given, *points = arrays_of(y) if x is None else arrays_of(y, x)
    along = axis_of(axis, given.ndim)
    dtype = dtypes.quotient(dtypes.promote_all(each.dtype for each in (given, *points)))
    values, *places = (astype(each, dtype.accumulator, copy=False) for each in (given, *points))
    before = (slice(None),) * along
    sums = values[*before, 1:] + values[*before, :-1]
    areas = [sums * (0.5 * _widths(place, along, given.ndim)) for place in places] or [sums * (0.5 * dx)]
    return astype(areas[0].sum(along), dtype, copy=False)


def _widths(points: Array, axis: int, rank: int) -> Array:
    """Returns the distances of points, which are a vector along `axis` or have all axes."""
    return diff(points).reshape(-1, *(1,) * (rank - 1 - axis)) if points.ndim == 1 else diff(points, axis=axis)


def gradient(x: Any, /, *spacing: Any, axis: Axis = None, edge_order: int = 1) -> Any:
    """Returns the derivatives of `x` along `axis`, or along each axis as a tuple: central differences.

    `spacing` is the distance of points, or a vector of their coordinates: one for all axes, or one for each. At the
    ends the differences are one-sided, and accurate to `edge_order`, 1 or 2. Raises ArgumentError for another order,
    for other numbers of spacings, and for an axis of fewer than `edge_order` + 1 elements.
    """
    if edge_order not in (1, 2):
        raise ArgumentError(f"gradient has an edge_order of 1 or 2, not {edge_order}")
    given = asarray(x)
    values = astype(given, dtypes.quotient(given.dtype), copy=False)
    axes = axes_of(axis, given.ndim)
    if len(spacing) not in (0, 1, len(axes)):
        raise ArgumentError(f"gradient along {len(axes)} axes takes as many spacings, or one, not {len(spacing)}")
    spacings = spacing if len(spacing) == len(axes) else (spacing or (1.0,)) * len(axes)
    slopes = [_slope(values, along, each, edge_order) for along, each in zip(axes, spacings, strict=True)]
    return slopes[0] if len(slopes) == 1 else tuple(slopes)


def _slope(x: Array, axis: int, spacing: Any, edge_order: int) -> Array:
    """Returns the derivative along one axis, by the parabola through each three neighbours."""
    length, before = x.shape[axis], (slice(None),) * axis
    if length <= edge_order:
        raise ArgumentError(f"gradient along an axis of length {length}: expected {edge_order + 1} or more")
    steps = _steps(x, axis, spacing)
    rise = (x[*before, 1:] - x[*before, :-1]) / steps  # of each line through two neighbours
    earlier, later = rise[*before, :-1], rise[*before, 1:]
    left, right = steps[:-1], steps[1:]
    middle = (earlier * right + later * left) / (left + right)
    ends = [rise[*before, :1], rise[*before, -1:]]
    if edge_order == 2:
        bend = (later - earlier) / (left + right)
        ends[0] = ends[0] - bend[*before, :1] * left[:1]
        ends[1] = ends[1] + bend[*before, -1:] * right[-1:]
    return concat([ends[0], middle, ends[1]], axis=axis)


def _steps(x: Array, axis: int, spacing: Any) -> Array:
    """Returns the distances of neighbours along an axis, in the dtype of `x`. They broadcast with its last axes."""
    (given,) = arrays_of(spacing) if isinstance(spacing, Array) else [x.session.array(spacing)]
    behind = (1,) * (x.ndim - 1 - axis)
    if not given.ndim:
        return broadcast_to(astype(given, x.dtype, copy=False), (x.shape[axis] - 1, *behind))
    if given.shape != (x.shape[axis],):
        raise ShapeError(f"coordinates of shape {given.shape} along an axis of length {x.shape[axis]}")
    return astype(diff(given), x.dtype, copy=False).reshape(-1, *behind)


def unwrap(x: Any, /, discont: float | None = None, axis: int = -1, *, period: float = 2 * math.pi) -> Array:
    """Returns `x` with multiples of `period` added, so that neighbours along `axis` differ by at most half of it.

    Neighbours that differ by less than `discont` stay as they are.
    """
    given = asarray(x)
    values = astype(given, dtypes.quotient(given.dtype), copy=False)
    along, half = axis_of(axis, given.ndim), period / 2
    jumps = diff(values, axis=along)
    wrapped = (jumps + half) % period - half
    wrapped = where((wrapped == -half) & (jumps > 0), half, wrapped)
    corrections = where(abs(jumps) < (half if discont is None else discont), 0.0, wrapped - jumps)
    before = (slice(None),) * along
    moved = values[*before, 1:] + cumulative_sum(corrections, axis=along)
    return concat([values[*before, :1], moved], axis=along)
