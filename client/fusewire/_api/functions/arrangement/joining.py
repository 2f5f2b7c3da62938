"""Functions that join arrays, and those that divide one."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from fusewire._api.array import Array
from fusewire._api.functions.arrangement.shapes import atleast_1d, atleast_2d, atleast_3d, ravel
from fusewire._api.ops.operands import arrays_of, asarray
from fusewire._api.ops.operations import axis_of, shape_of
from fusewire._errors import ArgumentError, QuotaExceeded, ShapeError
from fusewire._recording.record_op import apply, apply_to_one
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.programs.limits import MOST_LEAVES

__all__ = [
    "append",
    "array_split",
    "column_stack",
    "concat",
    "concatenate",
    "dsplit",
    "dstack",
    "hsplit",
    "hstack",
    "repeat",
    "split",
    "stack",
    "tile",
    "unstack",
    "vsplit",
    "vstack",
]


def concat(arrays: Sequence[Any], /, axis: int | None = 0) -> Array:
    """Joins the arrays along `axis`. If `axis` is None, flattens the arrays first."""
    given = arrays_of(*arrays)
    if not given:
        raise ArgumentError("concat takes at least one array")
    if axis is None:
        given, axis = [ravel(each) for each in given], 0
    most = given[0].session.limits.program_operands
    if len(given) > most:
        raise QuotaExceeded(f"concat of {len(given)} operands; limits.program_operands = {most}")
    if len(given) > MOST_LEAVES:
        raise QuotaExceeded(f"concat of {len(given)} operands; the most is {MOST_LEAVES}")
    joined: Array = apply(BY_NAME["concat"], given, (axis_of(axis, given[0].ndim),))
    return joined


concatenate = concat


def stack(arrays: Sequence[Any], /, axis: int = 0) -> Array:
    """Joins the arrays along a new axis."""
    given = arrays_of(*arrays)
    if not given:
        raise ArgumentError("stack takes at least one array")
    if len({each.shape for each in given}) > 1:
        raise ShapeError(f"stack takes arrays of one shape, not {', '.join(str(each.shape) for each in given)}")
    new = axis_of(axis, given[0].ndim + 1)
    shape = (*given[0].shape[:new], 1, *given[0].shape[new:])
    return concat([apply_to_one(BY_NAME["reshape"], each, (shape,)) for each in given], axis=new)


def split(x: Any, /, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Array]:
    """Splits `x` along `axis` into a number of equal parts, or at the given indices."""
    given = asarray(x)
    axis = axis_of(axis, given.ndim)
    length = given.shape[axis]
    places = [0, *_split_points(indices_or_sections, length), length]
    before = (slice(None),) * axis
    return [given[*before, slice(start, stop)] for start, stop in pairwise(places)]


def _split_points(sections: int | Sequence[int], length: int) -> Sequence[int]:
    """Returns the indices at which `split` divides an axis of `length`."""
    if isinstance(sections, Iterable):
        return sections
    parts = operator.index(sections)
    if parts < 1 or length % parts:
        raise ShapeError(f"an axis of length {length} does not split into {parts} equal parts")
    part = length // parts
    return [part * count for count in range(1, parts)]


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Returns the parts of `x` along `axis`, without that axis. It is the inverse of `stack`."""
    given = asarray(x)
    before = (slice(None),) * axis_of(axis, given.ndim)
    return tuple(given[*before, place] for place in range(given.shape[axis]))


def hstack(arrays: Sequence[Any], /) -> Array:
    """Joins arrays along their second axis, or vectors along their only one."""
    given = [atleast_1d(each) for each in arrays_of(*arrays)]
    return concat(given, axis=0 if given and given[0].ndim == 1 else 1)


def vstack(arrays: Sequence[Any], /) -> Array:
    """Joins arrays along their first axis; a vector is a row."""
    return concat([atleast_2d(each) for each in arrays_of(*arrays)])


def dstack(arrays: Sequence[Any], /) -> Array:
    """Joins arrays along their third axis, in the shapes that `atleast_3d` gives them."""
    return concat([atleast_3d(each) for each in arrays_of(*arrays)], axis=2)


def column_stack(arrays: Sequence[Any], /) -> Array:
    """Joins vectors as columns, and matrices along their second axis."""
    given = arrays_of(*arrays)
    return concat([each if each.ndim > 1 else each.reshape(-1, 1) for each in given], axis=1)


def tile(x: Any, /, repetitions: int | Sequence[int]) -> Array:
    """Returns `x` repeated along each axis, the last number for the last axis.

    fw.tile(fw.asarray([1, 2]), (2, 2))  # [[1, 2, 1, 2], [1, 2, 1, 2]]
    """
    given, counts = asarray(x), [*shape_of(repetitions)]
    rank = max(given.ndim, len(counts))
    tiled = given.reshape((1,) * (rank - given.ndim) + given.shape)
    counts = [1] * (rank - len(counts)) + counts
    for axis, count in enumerate(counts):
        tiled = tiled if count == 1 else _repeated(tiled, count, axis, is_whole=True)
    return tiled.copy() if tiled is given else tiled


def repeat(x: Any, /, repeats: Any, axis: int | None = None) -> Array:
    """Returns `x` with each element repeated along `axis`; without an axis, of the flattened array.

    `repeats` is a number, or one number for each place along the axis. If it is on the server, the call waits for it:
    the shape of the result depends on it.
    """
    given, along = (ravel(x), 0) if axis is None else (asarray(x), axis)
    along = axis_of(along, given.ndim)
    counts = shape_of(repeats.tolist() if isinstance(repeats, Array) else repeats)
    if len(counts) == 1:
        return _repeated(given, counts[0], along, is_whole=False)
    if len(counts) != given.shape[along]:
        raise ShapeError(f"{len(counts)} repeats do not fit axis {along} of {given.shape}")
    return given.take(np.repeat(np.arange(len(counts)), counts), axis=along)


def _repeated(x: Array, count: int, axis: int, *, is_whole: bool) -> Array:
    """Repeats the whole axis, or each place of it."""
    before, length, behind = math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :])
    inner, outer = ((1, length), (count, length)) if is_whole else ((length, 1), (length, count))
    spread = x.reshape(before, *inner, behind)
    wide = apply_to_one(BY_NAME["broadcast_to"], spread, ((before, *outer, behind),))
    return wide.reshape(*x.shape[:axis], length * count, *x.shape[axis + 1 :])


def append(x: Any, values: Any, /, axis: int | None = None) -> Array:
    """Returns `x` joined with `values` along `axis`; without an axis, flattens both first."""
    return concat(arrays_of(x, values), axis=axis)


def array_split(x: Any, /, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Array]:
    """Splits `x` along `axis` as `split` does, but into parts whose lengths may differ by 1; the first are longer."""
    if isinstance(indices_or_sections, Iterable):
        return split(x, indices_or_sections, axis)
    given, parts = asarray(x), operator.index(indices_or_sections)
    if parts < 1:
        raise ArgumentError(f"array_split into {parts} parts: expected 1 or more")
    shorter, longer = divmod(given.shape[axis_of(axis, given.ndim)], parts)
    return split(given, [shorter * part + min(part, longer) for part in range(1, parts)], axis)


def hsplit(x: Any, /, indices_or_sections: int | Sequence[int]) -> list[Array]:
    """Splits `x` along its second axis, or a vector along its only one, as `split` does."""
    given = asarray(x)
    return split(given, indices_or_sections, 1 if given.ndim > 1 else 0)


def vsplit(x: Any, /, indices_or_sections: int | Sequence[int]) -> list[Array]:
    """Splits `x` along its first axis as `split` does. Raises ShapeError below rank 2."""
    return split(_of_rank(x, 2, "vsplit"), indices_or_sections, 0)


def dsplit(x: Any, /, indices_or_sections: int | Sequence[int]) -> list[Array]:
    """Splits `x` along its third axis as `split` does. Raises ShapeError below rank 3."""
    return split(_of_rank(x, 3, "dsplit"), indices_or_sections, 2)


def _of_rank(x: Any, least: int, name: str) -> Array:
    given = asarray(x)
    if given.ndim < least:
        raise ShapeError(f"{name} takes rank {least} or more, not {given.ndim}")
    return given
