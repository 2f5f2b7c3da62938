"""Derivatives of scans along an axis and of reductions of segments.

The running greatest and least give the cotangent to the first of equal elements, because that is where they change.
Elements that are equally the greatest or the least of a segment share it. The derivatives of products divide by no
element, so that they are right where elements are 0: they add up in log2(n) steps of the whole line (Hillis and Steele,
Data parallel algorithms, 1986).
"""

from __future__ import annotations

from typing import Any

from fusewire._api.functions.elementwise.choices import where
from fusewire._api.gradients.rules.parts import (
    added_along,
    along,
    flipped,
    full_beside,
    joined,
    moved_ahead,
    numbers_along,
    scanned,
)
from fusewire._api.gradients.rules.rule import Rule
from fusewire._api.gradients.use import Use
from fusewire._api.ops import operations
from fusewire._recording.record_op import apply
from fusewire_protos.ops.catalogue import BY_NAME


def _of_sums(g: Any, use: Use) -> Any:
    (axis,) = use.attributes
    return flipped(scanned("cumulative_sum", flipped(g, axis), axis), axis)


def _of_products(g: Any, use: Use) -> Any:
    """The element at j is in the products from j on: each is that before j, times x[j], times those from j + 1 on."""
    (axis,) = use.attributes
    x, length = use.operand(0), use.spec(0).shape[axis]
    if length < 2:
        return g
    before = joined(
        [full_beside(x, (*x.shape[:axis], 1, *x.shape[axis + 1 :]), 1.0), use.result[along(axis, slice(-1))]], axis
    )
    later, factors, distance = g, moved_ahead(x, axis, 1, 0.0), 1
    while distance < length:  # later[j] = g[j] + x[j + 1] · later[j + 1], over ever longer distances
        later = later + factors * moved_ahead(later, axis, distance, 0.0)
        factors = factors * moved_ahead(factors, axis, distance, 0.0)
        distance *= 2
    return before * later


def _of_extremes(g: Any, use: Use) -> Any:
    (axis,) = use.attributes
    y, length = use.result, use.spec(0).shape[axis]
    if length < 2:
        return g
    changes = y[along(axis, slice(1, None))] != y[along(axis, slice(-1))]
    first = full_beside(y, (*y.shape[:axis], 1, *y.shape[axis + 1 :]), 1, changes.dtype)
    numbers = where(joined([first, changes], axis), numbers_along(y, axis), 0)
    return added_along(full_beside(g, y.shape, 0.0), scanned("cumulative_max", numbers, axis), axis, g)


def _at_places(reduced: Any, use: Use, nothing: float = 0.0) -> Any:
    """Returns for each element what belongs to its place; `nothing` if it has none of the places."""
    axis, count = use.attributes
    places = use.operand(1)
    if not count:
        return full_beside(reduced, use.spec(0).shape, nothing)
    inside = operations.take_places(reduced, apply(BY_NAME["clip"], (places, 0, count - 1)), axis)
    return where(_of_line((places >= 0) & (places < count), use), inside, nothing)


def _of_line(places: Any, use: Use) -> Any:
    """Returns what is one for each place of the axis in a shape that broadcasts to the elements."""
    axis, shape = use.attributes[0], use.spec(0).shape
    return operations.reshape(places, (shape[axis], *[1] * (len(shape) - axis - 1)))


def _of_segment_extreme(g: Any, use: Use) -> Any:
    is_extreme = use.operand(0) == _at_places(use.result, use)
    counts: Any = apply(BY_NAME["segment_sum"], (is_extreme.astype(g.dtype), use.operand(1)), use.attributes)
    return where(is_extreme, _at_places(g, use) / _at_places(counts, use, 1.0), 0.0)


def _of_segment_prod(g: Any, use: Use) -> Any:
    axis, x, places = use.attributes[0], use.operand(0), use.operand(1)
    behind = flipped(_products_before(flipped(x, axis), flipped(places, 0), axis, use), axis)
    return _at_places(g, use) * _products_before(x, places, axis, use) * behind


def _products_before(x: Any, places: Any, axis: int, use: Use) -> Any:
    """Returns for each element the product of those before it that have its place."""
    length = x.shape[axis]
    found = _from_before(x, places, axis, 1, use)
    distance = 1
    while distance < length:
        found = found * _from_before(found, places, axis, distance, use)
        distance *= 2
    return found


def _from_before(x: Any, places: Any, axis: int, distance: int, use: Use) -> Any:
    """Returns the element `distance` before each one; 1 if that is none, or has another place."""
    length = x.shape[axis]
    distance = min(distance, length)
    ones = full_beside(x, (*x.shape[:axis], distance, *x.shape[axis + 1 :]), 1.0)
    is_same = _of_line(
        joined([full_beside(places, (distance,), 0), 1 * (places[distance:] == places[:-distance])], 0), use
    )
    return where(is_same != 0, joined([ones, x[along(axis, slice(length - distance))]], axis), 1.0)


LINES = {
    "cumulative_sum": Rule((_of_sums,)),
    "cumulative_prod": Rule((_of_products,), operands=True, result=True),
    "cumulative_max": Rule((_of_extremes,), result=True),
    "cumulative_min": Rule((_of_extremes,), result=True),
    "segment_sum": Rule((_at_places, None), ((1,),)),
    "segment_prod": Rule((_of_segment_prod, None), operands=True),
    "segment_min": Rule((_of_segment_extreme, None), operands=True, result=True),
    "segment_max": Rule((_of_segment_extreme, None), operands=True, result=True),
}
