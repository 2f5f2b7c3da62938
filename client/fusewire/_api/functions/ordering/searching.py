"""Places of values in sorted arrays, by bisection; membership, and what lies between the points of a line."""

from __future__ import annotations

from typing import Any

from fusewire._api.array import Array
from fusewire._api.catalogue.catalogued import isnan, logical_not
from fusewire._api.functions.arrangement.joining import concat
from fusewire._api.functions.creation.creation import zeros_like
from fusewire._api.functions.elementwise.choices import clip, where
from fusewire._api.functions.ordering.keys import keys_of
from fusewire._api.functions.ordering.sorting import argsort, cumulative_sum, lexsort, sort
from fusewire._api.ops.float_operands import promoted
from fusewire._api.ops.operands import arrays_of
from fusewire._api.ops.operations import astype, take_places
from fusewire._errors import ArgumentError, ShapeError
from fusewire_protos.ops import dtypes

__all__ = ["interp", "isin", "searchsorted"]


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Array:
    """Returns for each element of `x2` the place in the sorted vector `x1` before which it belongs, in int64.

    Among equal elements that is the first place, or with `side` "right" the one behind the last. NaN belongs last.
    `sorter` are the indices that sort `x1`. Raises ShapeError unless `x1` is a vector, ArgumentError for another side.
    """
    if side not in ("left", "right"):
        raise ArgumentError(f"searchsorted has no side {side!r}, but 'left' and 'right'")
    vector, values = promoted(x1, x2)
    if vector.ndim != 1:
        raise ShapeError(f"searchsorted takes a sorted vector, not rank {vector.ndim}")
    ordered = vector if sorter is None else vector.take(sorter, axis=0)
    place = zeros_like(values, dtype=dtypes.int64)
    for bit in reversed(range(ordered.size.bit_length())):
        further = place + (1 << bit)
        is_before = _goes_before(take_places(ordered, further - 1, 0), values, side)
        place = where((further <= ordered.size) & is_before, further, place)
    return place


def _goes_before(element: Array, value: Array, side: str) -> Array:
    """Returns whether an element stands before the place of a value. NaN stands last."""
    is_before = element < value if side == "left" else element <= value
    if not element.dtype.is_floating:
        return is_before
    return where(isnan(value), logical_not(isnan(element)) if side == "left" else True, is_before)


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Array:
    """Returns whether each element of `x1` is an element of `x2`, or with `invert` is none. NaN is none of any."""
    elements, among = promoted(x1, x2)
    if elements.dtype.is_complex:
        elements, among = _numbered(elements, among)
    if not among.size:
        found = zeros_like(elements, dtype=dtypes.bool_)
    else:
        ordered = sort(among.reshape(-1))
        place = clip(searchsorted(ordered, elements), 0, ordered.size - 1)
        found = take_places(ordered, place, 0) == elements
    return logical_not(found) if invert else found


def _numbered(x1: Array, x2: Array) -> tuple[Array, Array]:
    """Returns numbers in place of the elements of two arrays, the same for equal ones. Each NaN has one of its own."""
    both = concat([x1, x2], axis=None)
    order = lexsort(keys_of(both))
    ordered = take_places(both, order, 0)
    steps = concat([order[:1] * 0, astype(ordered[1:] != ordered[:-1], dtypes.int64)])
    numbers = take_places(cumulative_sum(steps), argsort(order), 0)
    return numbers[: x1.size].reshape(x1.shape), numbers[x1.size :].reshape(x2.shape)


def interp(x: Any, xp: Any, fp: Any, /, left: Any = None, right: Any = None) -> Array:
    """Returns in float64 the values at `x` of the lines through the points (`xp`, `fp`), whose `xp` ascend.

    Before the first point the value is `left`, by default that of the point, and behind the last point `right`. Raises
    ShapeError unless both are vectors of one length, 1 or more.
    """
    at, places, values = (astype(each, dtypes.float64, copy=False) for each in arrays_of(x, xp, fp))
    if places.ndim != 1 or places.shape != values.shape or not places.size:
        raise ShapeError(f"interp takes two vectors of one length, not {places.shape} and {values.shape}")
    last = places.size - 1
    before = clip(searchsorted(places, at, side="right") - 1, 0, max(last - 1, 0))
    behind = clip(before + 1, 0, last)
    x0, y0 = (take_places(each, before, 0) for each in (places, values))
    x1, y1 = (take_places(each, behind, 0) for each in (places, values))
    width = where(x1 == x0, 1.0, x1 - x0)
    between = where(at == x0, y0, (y1 - y0) / width * (at - x0) + y0)
    started = where(at < places[0], values[0] if left is None else left, between)
    ended = where(at == places[-1], values[-1], started)
    return where(at > places[-1], values[-1] if right is None else right, ended)
