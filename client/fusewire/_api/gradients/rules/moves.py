"""Derivatives of views, of joining, and of reading and writing parts of an array."""

from __future__ import annotations

from itertools import accumulate
from math import prod
from typing import Any

from fusewire._api.array import Array
from fusewire._api.gradients.rules.parts import added_along, along, full_beside
from fusewire._api.gradients.rules.rule import Rule
from fusewire._api.gradients.use import Use
from fusewire._api.ops import operations
from fusewire._api.ops.filled import counted
from fusewire._errors import ShapeError
from fusewire._recording.record_op import apply
from fusewire._recording.stepped_integer import SteppedInteger
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.strided import Strided, check_distinct, reach

_MOST_COPIES = 64  # of an array, of which a view shows each element once


def _of_transpose(g: Any, use: Use) -> Any:
    (permutation,) = use.attributes
    return operations.transpose(g, [permutation.index(axis) for axis in range(len(permutation))])


def _of_concat(g: Any, use: Use, place: int) -> Any:
    (axis,) = use.attributes
    ends = [*accumulate(spec.shape[axis] for spec in use.signature.specs)]
    return g[along(axis, slice(ends[place] - use.spec(place).shape[axis], ends[place]))]


def _part(g: Any, use: Use, name: str) -> Any:
    return apply(BY_NAME[name], (g,), use.attributes, use.starts)


def _with_part(g: Any, part: Any, use: Use, name: str) -> Any:
    return apply(BY_NAME[name], (g, part), use.attributes, use.starts)


def _added_slice(g: Any, use: Use, total: Array) -> Array:
    added: Array = _with_part(total, _part(total, use, "slice") + g, use, "assign_slice")
    return added


def _added_strided(g: Any, use: Use, total: Array) -> Array:
    part = Strided(*use.attributes)
    if 0 in part.shape:
        return total
    try:
        check_distinct(part)
    except ShapeError:
        return _added_overlapping(g, use, total, part)
    added: Array = _with_part(total, _part(total, use, "strided") + g, use, "assign_strided")
    return added


def _added_overlapping(g: Any, use: Use, total: Array, part: Strided) -> Array:
    """Adds a view that shows elements more than once: first to the elements that it spans, then to all."""
    low, high = reach(part)
    spanned = _of_copies(g, part, high + 1) if low == 0 else None
    if spanned is None:
        spanned = _of_places(g, part, low, high)
    (start,) = use.starts
    first = start.plus(low) if isinstance(start, SteppedInteger) else start + low
    region = ((0,), spanned.shape, (1,), ())
    flat = operations.reshape(total, (prod(total.shape),))
    sums = apply(BY_NAME["slice"], (flat,), region, (first,)) + spanned
    added: Array = operations.reshape(apply(BY_NAME["assign_slice"], (flat, sums), region, (first,)), total.shape)
    return added


def _of_copies(g: Any, part: Strided, length: int) -> Array | None:
    """Returns the sums of what a view shows of each of `length` elements, or None if that would take too much memory.

    The view of windows over an array shows each element once if it is one of several copies of the array, one for each
    place in a window. So a view of copies is written, without counting places, and the copies are added.
    """
    cut = _repeating(part)
    copies, strides = 1, [*part.strides]
    for axis in cut:  # a step along it goes on to the next copy too
        strides[axis] += copies * length
        copies *= part.shape[axis]
    if copies > _MOST_COPIES:
        return None
    attributes = (part.shape, tuple(strides))
    zeros = full_beside(g, (copies, length), 0.0)
    separate = apply(BY_NAME["assign_strided"], (zeros, g), attributes, (0,))
    sums: Array = operations.reduce("sum", separate, 0, keepdims=False)
    return operations.astype(sums, g.dtype, copy=False)


def _repeating(part: Strided) -> list[int]:
    """Returns short axes without which a view shows each element once."""
    kept: list[int] = []
    cut: list[int] = []
    for axis in sorted(range(len(part.shape)), key=lambda axis: part.strides[axis]):
        if part.shape[axis] == 1:
            continue
        kept.append(axis)
        while part.strides[axis] <= _reached(part, [each for each in kept if each != axis]) and axis in kept:
            shortest = min(kept, key=lambda each: part.shape[each])
            kept.remove(shortest)
            cut.append(shortest)
    return cut


def _reached(part: Strided, axes: list[int]) -> int:
    return sum((part.shape[axis] - 1) * part.strides[axis] for axis in axes)


def _of_places(g: Any, part: Strided, low: int, high: int) -> Array:
    """Returns the sums of what a view shows of each element that it spans, by counting which elements these are."""
    places = full_beside(g, (), -low, dtypes.int64)
    for axis, (dim, stride) in enumerate(zip(part.shape, part.strides, strict=True)):
        numbers = operations.reshape(counted(g.session, dim), (dim, *[1] * (len(part.shape) - axis - 1)))
        places = places + numbers * stride
    places = operations.reshape(operations.broadcast_to(places, part.shape), (prod(part.shape),))
    return full_beside(g, (high - low + 1,), 0.0).at[places].add(operations.reshape(g, (prod(part.shape),)))


def _limited(places: Any, length: int) -> Any:
    """Returns places as the op reads them: those out of range are the first or the last."""
    return apply(BY_NAME["clip"], (places, 0, length - 1))


def _added_taken(g: Any, use: Use, total: Array) -> Array:
    (axis,) = use.attributes
    if 0 in g.shape:
        return total
    added: Array = total.at[along(axis, _limited(use.operand(1), total.shape[axis]))].add(g)
    return added


def _added_taken_along(g: Any, use: Use, total: Array) -> Array:
    (axis,) = use.attributes
    if 0 in g.shape:
        return total
    return added_along(total, _limited(use.operand(1), total.shape[axis]), axis, g)


MOVES = {
    "reshape": Rule((lambda g, use: operations.reshape(g, use.spec(0).shape),)),
    "transpose": Rule((_of_transpose,)),
    "broadcast_to": Rule((lambda g, use: g,)),
    "slice": Rule(adding=_added_slice),
    "strided": Rule(adding=_added_strided),
    "concat": Rule(pull_each=_of_concat),
    "assign_slice": Rule(
        (
            lambda g, use: _with_part(g, 0.0, use, "assign_slice"),
            lambda g, use: _part(g, use, "slice"),
        )
    ),
    "assign_strided": Rule(
        (
            lambda g, use: _with_part(g, 0.0, use, "assign_strided"),
            lambda g, use: _part(g, use, "strided"),
        )
    ),
    "take": Rule(operands=((1,),), adding=_added_taken),
    "take_along_axis": Rule(operands=((1,),), adding=_added_taken_along),
}
