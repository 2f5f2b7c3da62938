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
    places = full_beside(g, (), -low, dtypes.int64)
    for axis, (dim, stride) in enumerate(zip(part.shape, part.strides, strict=True)):
        numbers = operations.reshape(counted(g.session, dim), (dim, *[1] * (len(part.shape) - axis - 1)))
        places = places + numbers * stride
    places = operations.reshape(operations.broadcast_to(places, part.shape), (prod(part.shape),))
    spanned = full_beside(g, (high - low + 1,), 0.0).at[places].add(operations.reshape(g, (prod(part.shape),)))
    (start,) = use.starts
    first = start.plus(low) if isinstance(start, SteppedInteger) else start + low
    region = ((0,), spanned.shape, (1,), ())
    flat = operations.reshape(total, (prod(total.shape),))
    sums = apply(BY_NAME["slice"], (flat,), region, (first,)) + spanned
    added: Array = operations.reshape(apply(BY_NAME["assign_slice"], (flat, sums), region, (first,)), total.shape)
    return added


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
