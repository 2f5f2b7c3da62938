"""Functions that write to elements of an array, or count what falls to a place."""

from __future__ import annotations

import builtins
import operator
from typing import Any, Literal

import numpy as np

from fusewire._api.array import Array
from fusewire._api.catalogue.catalogued import max as greatest
from fusewire._api.catalogue.catalogued import min as least
from fusewire._api.functions.arrangement.editing import resize
from fusewire._api.functions.arrangement.joining import stack
from fusewire._api.functions.creation.creation import full_like
from fusewire._api.functions.elementwise.choices import where as choice  # `copyto` has a parameter `where`
from fusewire._api.functions.ordering.searching import searchsorted
from fusewire._api.ops.operands import array_beside, arrays_of, asarray
from fusewire._api.ops.operations import astype, axis_of
from fusewire._api.ops.segments import Segments
from fusewire._api.ops.strided import strides_of
from fusewire._errors import ArgumentError, DtypeError, ShapeError
from fusewire_protos.ops import dtypes

__all__ = [
    "add_at",
    "bincount",
    "copyto",
    "digitize",
    "fill_diagonal",
    "histogram",
    "histogram2d",
    "place",
    "put",
    "put_along_axis",
    "putmask",
]


def add_at(x: Array, key: Any, value: Any, /) -> None:
    """Adds `value` to `x[key]` in place, as often as an element is named. Is NumPy's `np.add.at(x, key, value)`.

    The values of an element are summed in a fixed order, and the sum is added. Raises what an assignment raises, and
    DtypeError for values of a higher kind than the elements.
    """
    x._combine_at("add", key, value)


def copyto(x: Array, values: Any, /, casting: Any = "same_kind", where: Any = True) -> None:  # noqa: FBT002  # as NumPy calls it
    """Assigns `values` to `x` in place, where the mask `where` is true. Raises DtypeError for an unsafe cast."""
    new = array_beside(values, _written("copyto", x))
    if not np.can_cast(dtypes.to_numpy(new.dtype), dtypes.to_numpy(x.dtype), casting):
        raise DtypeError(f"copyto does not cast {new.dtype.name} to {x.dtype.name} by the rule {casting!r}")
    x[...] = new if where is True else choice(where, new, x)


def fill_diagonal(x: Array, value: Any, /, wrap: bool = False) -> None:  # noqa: FBT001, FBT002  # as NumPy calls it
    """Assigns `value`, a number or a vector that is repeated, to the main diagonal of `x` in place.

    With `wrap` the diagonal of a matrix of more rows than columns begins again behind its end. Raises ShapeError below
    rank 2, and above rank 2 unless all axes have one length.
    """
    shape = _written("fill_diagonal", x).shape
    if len(shape) < 2 or (len(shape) > 2 and len(set(shape)) > 1):
        raise ShapeError(f"fill_diagonal takes a matrix, or a cube of any rank, not {shape}")
    end = x.size if wrap or len(shape) > 2 else builtins.min(x.size, shape[1] * shape[1])
    step = sum(strides_of(shape))
    count = len(range(0, end, step)) if x.size else 0
    new = value if np.ndim(value) == 0 else resize(array_beside(value, x), count)
    x._write_view(new, (count,), (step,), 0)


def place(x: Array, mask: Any, values: Any, /) -> None:
    """Assigns `values`, repeated as often as needed, to the elements of `x` where `mask` is true, in place.

    Waits for the mask, because the number of these elements decides. Raises ArgumentError for no values.
    """
    is_chosen = np.asarray(mask).astype(np.bool_)
    new = array_beside(values, _written("place", x))
    count = int(np.count_nonzero(is_chosen))
    if count and not new.size:
        raise ArgumentError("place takes one value or more")
    x[is_chosen] = resize(new, count)


def put(x: Array, indices: Any, values: Any, /, mode: str = "raise") -> None:
    """Assigns `values`, repeated as often as needed, to the elements of `x` at `indices` of the flat array, in place.

    With `mode` "wrap" an index counts modulo the number of elements, with "clip" the nearest element is meant. With
    "raise" IndexError is raised for an index of the host out of range. Raises ArgumentError for another mode.
    """
    if mode not in ("raise", "wrap", "clip"):
        raise ArgumentError(f"put has no mode {mode!r}, but 'raise', 'wrap' and 'clip'")
    flat = _written("put", x).reshape(-1)
    at = (indices if isinstance(indices, Array) else np.asarray(indices)).reshape(-1)
    if mode != "raise":
        at = at % flat.size if mode == "wrap" else at.clip(0, flat.size - 1)
    flat[at] = resize(array_beside(values, x), at.size)
    x[...] = flat.reshape(x.shape)


def putmask(x: Array, mask: Any, values: Any, /) -> None:
    """Assigns to the elements of `x` where `mask` is true the elements of `values` beside them, in place.

    `values` of another size are repeated in row-major order.
    """
    new = array_beside(values, _written("putmask", x))
    x[...] = choice(mask, new if new.shape == x.shape else resize(new, x.shape), x)


def _written(name: str, x: Any) -> Array:
    if not isinstance(x, Array):
        text = f"{name} writes to an array on the server, not to {type(x).__name__}"
        raise TypeError(f"{text}; give NumPy's function values: np.{name}(v, x.numpy())")
    return x


def put_along_axis(x: Array, indices: Any, values: Any, /, axis: int | None = -1) -> None:
    """Writes `values` to `x` in place, where `take_along_axis(x, indices, axis)` reads.

    `indices` have the rank of `x`, and broadcast with it but along `axis`. Without an axis they are a vector, and `x`
    is seen flat. Raises ShapeError for another rank, and what an assignment raises.
    """
    if axis is None:
        flat = x.flatten()
        flat[indices] = values
        x[...] = flat.reshape(x.shape)
        return
    at, along = array_beside(indices, x) if isinstance(indices, Array) else np.asarray(indices), axis_of(axis, x.ndim)
    if at.ndim != x.ndim:
        raise ShapeError(f"put_along_axis takes indices of rank {x.ndim}, not {at.ndim}")
    places = np.ogrid[tuple(slice(dim) for dim in x.shape)]
    x[tuple(at if each == along else place for each, place in enumerate(places))] = values


def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Array:
    """Returns how often each number from 0 on occurs in the vector `x` of integers, in int64, or its sum of `weights`.

    Has `minlength` elements or more, as the greatest number asks. So it waits for this number, if `x` is on the server.
    Weights are summed in float64. Raises ArgumentError for a negative number, DtypeError for no integers, ShapeError
    for another rank or other weights.
    """
    least_length = operator.index(minlength)
    numbers = asarray(x)
    if numbers.ndim != 1:
        raise ShapeError(f"bincount takes a vector, not rank {numbers.ndim}")
    if not numbers.dtype.is_integer and numbers.size:
        raise DtypeError(f"bincount takes integers, not {numbers.dtype.name}")
    if least_length < 0:
        raise ArgumentError(f"minlength = {least_length} is negative")
    lowest, highest = _extremes(numbers, x)
    if lowest < 0:
        raise ArgumentError("bincount takes no negative numbers")
    return _counted(numbers, builtins.max(highest + 1, least_length), weights)


def _extremes(numbers: Array, given: Any) -> tuple[int, int]:
    """Returns the least and the greatest number, by one read if they were given on the server; of none, 0 and −1."""
    if not numbers.size:
        return 0, -1
    if isinstance(given, Array):
        lowest, highest = stack([least(numbers), greatest(numbers)]).tolist()
    else:
        lowest, highest = np.min(given), np.max(given)
    return int(lowest), int(highest)


def _counted(places: Array, length: int, weights: Any) -> Array:
    """Returns how many places there are of each number below `length`, or the sum of their weights."""
    if weights is None:
        values = full_like(places, 1, dtype=dtypes.int64)
    else:
        values = astype(array_beside(weights, places), dtypes.float64, copy=False)
        if values.shape != places.shape:
            raise ShapeError(f"weights of shape {values.shape} beside {places.shape}")
    counted: Array = Segments(astype(places, dtypes.int64), length).reduced("segment_sum", values, 0)
    return counted


def digitize(x: Any, /, bins: Any, *, right: bool = False) -> Array:
    """Returns for each element of `x` the number of its bin, in int64, where `bins` are the edges in order.

    For ascending edges that is how many of them are not above the element, with `right` how many are below it; for
    descending ones how many are above it, with `right` how many are not below it. Raises ShapeError unless `bins` is a
    vector.
    """
    values, edges = arrays_of(x, bins)
    if edges.ndim != 1:
        raise ShapeError(f"digitize takes a vector of bins, not rank {edges.ndim}")
    side: Literal["left", "right"] = "left" if right else "right"
    ascending = searchsorted(edges, values, side=side)
    if edges.size < 2:
        return ascending
    descending = edges.size - searchsorted(edges[::-1], values, side=side)
    return choice(edges[0] <= edges[-1], ascending, descending)


def histogram(
    x: Any,
    /,
    bins: Any = 10,
    range: tuple[float, float] | None = None,  # noqa: A002  # NumPy's name
    *,
    density: bool = False,
    weights: Any = None,
) -> tuple[Array, Array]:
    """Returns how many elements of `x` lie in each bin, and the edges of the bins in float64.

    `bins` are a number of bins of equal width, from the least element to the greatest or over `range`, or the ascending
    edges, or a name such as "auto", by which NumPy finds the edges of values for which the call waits. A bin holds its
    lower edge, the last one both. Counts are int64, and sums of `weights` float64. With `density` they are divided by
    their sum and by the widths. Raises ArgumentError for no bins, a bad range, an unknown name, and weights beside a
    name.
    """
    values = asarray(x).reshape(-1)
    edges = _named_edges(values, bins, range, weights) if isinstance(bins, str) else _edges(values, bins, range)
    weight = None if weights is None else array_beside(weights, values).reshape(-1)
    counts = _counted(_bins_of(values, edges), edges.size - 1, weight)
    if not density:
        return counts, edges
    return counts / counts.sum() / (edges[1:] - edges[:-1]), edges


def histogram2d(
    x: Any,
    y: Any,
    /,
    bins: Any = 10,
    range: Any = None,  # noqa: A002  # NumPy's name
    *,
    density: bool = False,
    weights: Any = None,
) -> tuple[Array, Array, Array]:
    """Returns how many points (`x`, `y`) lie in each cell of a grid, in float64, and the edges along both axes.

    `bins` are those of `histogram` for both axes, but no name, or a pair of them, and `range` is a pair of limits for
    each axis. With `density` the counts, or sums of `weights`, are divided by their sum and by the areas. Raises
    ShapeError unless `x` and `y` are vectors of one length, and what `histogram` raises.
    """
    points = arrays_of(x, y)
    if any(each.ndim != 1 for each in points) or points[0].size != points[1].size:
        raise ShapeError(f"histogram2d takes vectors of one length, not {[each.shape for each in points]}")
    is_pair = not isinstance(bins, int | np.integer | str) and len(bins) == 2
    rows, columns = (
        _edges(each, of_axis, None if limits is None else tuple(limits))
        for each, of_axis, limits in zip(points, bins if is_pair else (bins, bins), range or (None, None), strict=True)
    )
    row, column = _bins_of(points[0], rows), _bins_of(points[1], columns)
    height, width = rows.size - 1, columns.size - 1
    cell = choice((row < 0) | (column < 0), -1, row * width + column)
    weight = None if weights is None else array_beside(weights, points[0])
    counts = astype(_counted(cell, height * width, weight), dtypes.float64, copy=False).reshape(height, width)
    if density:
        counts = counts / counts.sum() / (rows[1:] - rows[:-1]).reshape(-1, 1) / (columns[1:] - columns[:-1])
    return counts, rows, columns


def _bins_of(values: Array, edges: Array) -> Array:
    """Returns for each element the number of its bin, −1 if it is in none. The last bin holds both of its edges."""
    wide = astype(values, dtypes.float64, copy=False)
    place = searchsorted(edges, wide, side="right") - 1
    place = choice(wide == edges[-1], edges.size - 2, place)
    return choice((wide >= edges[0]) & (wide <= edges[-1]), place, -1)


def _named_edges(values: Array, name: str, limits: tuple[float, float] | None, weights: Any) -> Array:
    if weights is not None:
        raise ArgumentError(f"bins = {name!r} are found without weights; give their number or their edges")
    exact = values if values.dtype.is_integer else astype(values, dtypes.float64, copy=False)
    try:
        edges = np.histogram_bin_edges(exact.numpy(), name, limits)
    except ValueError as error:  # an unknown name, or what is wrong with the limits
        raise ArgumentError(f"bins = {name!r}: {error}") from None
    return array_beside(edges.astype(np.float64), values)


def _edges(values: Array, bins: Any, limits: tuple[float, float] | None) -> Array:
    if isinstance(bins, str):
        raise ArgumentError(f"bins = {bins!r}: only histogram takes a name")
    if not isinstance(bins, int | np.integer):
        edges = astype(array_beside(bins, values), dtypes.float64)
        if edges.ndim != 1 or edges.size < 2:
            raise ArgumentError(f"bins are a number or a vector of two edges or more, not shape {edges.shape}")
        return edges
    if bins < 1:
        raise ArgumentError(f"bins = {bins}; there must be one bin or more")
    if limits is not None and not (limits[0] <= limits[1] and np.isfinite(limits).all()):
        raise ArgumentError(f"range {limits} is not finite and ascending")
    if limits is not None or not values.size:
        low, high = limits or (0.0, 1.0)
        return array_beside(np.linspace(*_apart(low, high, low == high), bins + 1), values)
    wide = astype(values, dtypes.float64, copy=False)
    low, high = _apart(least(wide), greatest(wide), least(wide) == greatest(wide))
    steps = array_beside(np.arange(bins + 1.0), values)
    return choice(steps == bins, high, low + steps * ((high - low) / bins))


def _apart(low: Any, high: Any, is_point: Any) -> tuple[Any, Any]:
    """Returns limits that are 1 apart, if they are one point."""
    return low - 0.5 * is_point, high + 0.5 * is_point
