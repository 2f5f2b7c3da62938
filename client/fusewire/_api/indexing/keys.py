"""Reads the key of `x[key]` as NumPy does, without side effects.

Integers, slices, `...` and `None` become one region (a slice along several axes) and a new shape. An array of integers
in the key becomes a *gather*: it selects elements along its axis. The starts of slices are not part of the region, so a
loop that moves a window over an array repeats the same op. An index that the client knows must lie in its axis.
"""

from __future__ import annotations

import operator
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fusewire._conversions import Host
from fusewire._errors import ArgumentError, ShapeError
from fusewire._recording.implementation import Recorded, name_of_key
from fusewire._recording.op_rules import MOST_ITEMS
from fusewire._recording.stepped_integer import SteppedInteger
from fusewire_protos.ops import shapes
from fusewire_protos.ops.shapes import Region, Shape


class Gather(NamedTuple):
    """Integers that select along `axis`, which is an axis of the array that the region and the new shape give.

    `indices` are an array on the server, or places on this machine: integers from 0 to the axis's length − 1.
    If `comes_first`, the axes of the indices are the first axes of the result. As in NumPy, this happens if a slice,
    `...` or `None` stands between the indices and a single integer.
    """

    axis: int
    indices: Any
    comes_first: bool


class Index(NamedTuple):
    """A key as three steps: take the region, reshape it to the new shape, gather. A step that is None is left out.

    `new_axes` are the axes of the new shape that the array does not have, ascending.
    """

    region: Region | None
    starts: tuple[int, ...]
    new_shape: Shape | None
    gather: Gather | None
    new_axes: tuple[int, ...] = ()

    def selected(self, part: Shape, indices: Shape) -> Shape:
        """Returns the shape that the key selects from a region of shape `part`, if its indices have shape `indices`."""
        shape = part if self.new_shape is None else self.new_shape
        if self.gather is None:
            return shape
        before, behind = shape[: self.gather.axis], shape[self.gather.axis + 1 :]
        return indices + before + behind if self.gather.comes_first else before + indices + behind

    @property
    def gathered_axis(self) -> int:
        """Returns the axis of the region along which the gather selects."""
        assert self.gather is not None
        return self.gather.axis - sum(axis < self.gather.axis for axis in self.new_axes)


@dataclass(frozen=True)
class CountedIndex:  # no tuple, because a tuple is a key of several indices
    """An index that grows by the same step in each iteration of a loop; `array` has it on the server."""

    integer: SteppedInteger
    array: Any


known_indices: dict[tuple[Shape, Hashable], Index] = {}  # by the shape of the array, and the name of the key


class Writes(NamedTuple):
    """Tells for each place of one axis whether an assignment through indices writes to the place, and which value."""

    is_written: Host  # (length,) bool
    writer: Host  # (length,) int32, or int64 for long axes: the index of the written value; 0 if no value is written


class _Reader:
    """Collects the items of a key, axis by axis."""

    def __init__(self, shape: Shape, *, is_split: bool) -> None:
        self._shape = shape
        self._is_split = is_split  # as `_is_split` returns it
        self._axis = 0
        self._axes: list[int] = []
        self._lengths: list[int] = []
        self._steps: list[int] = []
        self._starts: list[int] = []
        self._dropped: list[int] = []
        self._result: list[int] = []
        self._gather: Gather | None = None
        self._new_axes: list[int] = []

    def read(self, item: Any) -> None:
        if item is None:
            self._new_axes.append(len(self._result))
            self._result.append(1)
        elif isinstance(item, slice):
            if isinstance(item.start, CountedIndex) or isinstance(item.stop, CountedIndex):
                self._counted_slice(item)
            else:
                self._slice(item)
        elif isinstance(item, CountedIndex):
            self._counted(item)
        else:
            integer = _integer_of(item)
            if integer is None:
                self._indices(item)
            else:
                self._integer(integer)

    def skip(self, axes: int) -> None:
        self._result += self._shape[self._axis : self._axis + axes]
        self._axis += axes

    def index(self) -> Index:
        self.skip(len(self._shape) - self._axis)
        region = None
        if self._axes:
            region = Region(tuple(self._axes), tuple(self._lengths), tuple(self._steps), tuple(self._dropped))
        new_shape = tuple(self._result) if self._new_axes else None
        return Index(region, tuple(self._starts), new_shape, self._gather, tuple(self._new_axes))

    def _slice(self, item: slice) -> None:
        dim = self._dim()
        start, stop, step = item.indices(dim)
        length = len(range(start, stop, step))
        if (length, step) != (dim, 1):
            self._region(start if length else 0, length, step if length > 1 else 1)
        self._result.append(length)
        self._axis += 1

    def _counted_slice(self, item: slice) -> None:
        """Reads a slice of which a bound grows from iteration to iteration. Its length must stay the same."""
        dim, step = self._dim(), 1 if item.step is None else operator.index(item.step)
        if step <= 0:
            raise ArgumentError("a slice whose bounds depend on the counter of fori_loop has a step of 1 or more")
        start, stop = _counted_bound(item.start), _counted_bound(item.stop)
        if start.is_within(-dim, -1) and stop.is_within(-dim, -1):
            start, stop = start.plus(dim), stop.plus(dim)
        if start.step != stop.step:
            raise ShapeError("a slice in the body of fori_loop has another length in each iteration")
        length = len(range(start, stop, step))
        if not (start.is_within(0, dim) and stop.is_within(0, dim)):
            raise IndexError(f"a slice in the body of fori_loop leaves axis {self._axis} of length {dim}")
        self._region(start if length else 0, length, step if length > 1 else 1)
        self._result.append(length)
        self._axis += 1

    def _counted(self, item: CountedIndex) -> None:
        dim, integer = self._dim(), item.integer
        if not integer.is_within(-dim, dim - 1):
            raise IndexError(f"an index in the body of fori_loop leaves axis {self._axis} of length {dim}")
        if integer.is_within(-dim, -1):
            integer = integer.plus(dim)
        if not integer.is_within(0, dim - 1):
            self._partly_from_the_back(item)
            return
        self._dropped.append(self._axis)
        self._region(integer, 1, 1)
        self._axis += 1

    def _partly_from_the_back(self, item: CountedIndex) -> None:
        """Reads an index that counts from the back in some iterations, which only a gather can."""
        if self._gather is not None:
            raise ArgumentError(
                f"the index of axis {self._axis} counts from the back in some iterations of fori_loop and from the "
                "front in others; only one index of a key may, and none beside an array of integers"
            )
        self._indices(item.array)

    def _integer(self, item: int) -> None:
        dim = self._dim()
        if not -dim <= item < dim:
            raise _out_of_range(item, self._axis, dim)
        self._dropped.append(self._axis)
        self._region(item % dim, 1, 1)
        self._axis += 1

    def _indices(self, item: Any) -> None:
        dim = self._dim()
        if self._gather is not None:
            raise ArgumentError(
                "an index holds one array of integers at most; to select elements by row and column, counted from the "
                "front, index the flattened array: x.ravel()[rows * x.shape[1] + columns]; to assign to them, assign "
                "to the flattened array: "
                "flat = x.ravel(); flat[rows * x.shape[1] + columns] = value; x[...] = flat.reshape(x.shape)"
            )
        places = self._checked(item) if isinstance(item, Recorded) else places_of(item, self._axis, self._shape)
        self._gather = Gather(len(self._result), places, self._is_split)
        self._result.append(dim)
        self._axis += 1

    def _checked(self, item: Recorded) -> Recorded:
        dtype, shape = item._spec.dtype, item._spec.shape
        if dtype.is_boolean:
            raise mask_refused(shape, self._shape[self._axis :])
        if not dtype.is_integer:
            raise _no_index(dtype.name)
        return item

    def _region(self, start: int, length: int, step: int) -> None:
        self._axes.append(self._axis)
        self._starts.append(start)
        self._lengths.append(length)
        self._steps.append(step)

    def _dim(self) -> int:
        if self._axis >= len(self._shape):
            raise IndexError(f"too many indices for an array of rank {len(self._shape)}")
        return self._shape[self._axis]


def read_index(key: Any, shape: Shape) -> Index:
    """Returns the meaning of `key` for an array of `shape`. Raises IndexError or ArgumentError.

    Keeps the meanings of keys that have a name: to read a key takes longer than to record an assignment.
    """
    name = name_of_key(key)
    known = None if name is None else known_indices.get((shape, name))
    if known is not None:
        return known
    index = _read(key, shape)
    if name is not None:
        if len(known_indices) >= MOST_ITEMS:
            known_indices.clear()
        known_indices[shape, name] = index
    return index


def _read(key: Any, shape: Shape) -> Index:
    items = key if isinstance(key, tuple) else (key,)
    consumed = sum(item is not None and item is not Ellipsis for item in items)
    if sum(item is Ellipsis for item in items) > 1:
        raise IndexError("an index holds one ellipsis at most")
    reader = _Reader(shape, is_split=_is_split(items))
    for item in items:
        if item is Ellipsis:
            reader.skip(max(len(shape) - consumed, 0))
        else:
            reader.read(item)
    return reader.index()


def _counted_bound(bound: Any) -> SteppedInteger:
    if isinstance(bound, CountedIndex):
        return bound.integer
    if bound is not None:
        operator.index(bound)  # raises for an array whose value is not known, and for what is no integer
    raise ShapeError("a slice in the body of fori_loop has another length in each iteration")


def whole(shape: Shape) -> Region:
    """Returns the region of all elements of an array of `shape`. `x[...] = value` assigns to this region."""
    shapes.check(shape)
    axes = tuple(range(len(shape)))
    return Region(axes, shape, (1,) * len(shape), ())


def places_of(given: Any, axis: int, shape: Shape) -> Host:
    """Returns indices that the client knows as places on `axis` of an array of `shape`, counted from the front.

    The places are int32, or int64 on a long axis.

    Raises IndexError for an index out of range and for what is no integer, and ArgumentError for a mask.
    """
    indices, length = np.asarray(given), shape[axis]
    if not indices.size and isinstance(given, list | tuple):  # NumPy makes an empty list an array of floats
        indices = indices.astype(np.int64)
    if indices.dtype.kind == "b":
        raise mask_refused(indices.shape, shape[axis:])
    if indices.dtype.kind not in "iu":
        raise _no_index(indices.dtype.name)
    for extreme in (int(indices.min()), int(indices.max())) if indices.size else ():
        if not -length <= extreme < length:
            raise _out_of_range(extreme, axis, length)
    places = indices.astype(np.int64)
    return np.where(places < 0, places + length, places).astype(_dtype_of_places(length))


def _dtype_of_places(length: int) -> type[np.signedinteger[Any]]:
    return np.int32 if length < 1 << 31 else np.int64


def check_mask(mask: Shape, shape: Shape) -> None:
    """Raises IndexError if a mask of shape `mask` does not have the shape of the first axes of `shape`."""
    if mask != shape[: len(mask)]:
        raise IndexError(f"a mask of shape {mask} does not fit {shape}: it must have the shape of the first axes")


def mask_refused(mask: Shape, shape: Shape) -> Exception:
    """Returns the error for a mask of shape `mask`, in a place of `shape` where only indices may stand."""
    check_mask(mask, shape)
    return ArgumentError("the number of elements that a mask selects depends on its values; use where")


def _no_index(given: str) -> IndexError:
    return IndexError(
        f"an index is an integer, a slice, `...`, None, or an array of integers or booleans; this one is {given}"
    )


def _out_of_range(index: int, axis: int, length: int) -> IndexError:
    return IndexError(f"index {index} is out of range for axis {axis} of length {length}")


def last_writes(places: Host, length: int) -> Writes:
    """Returns the effect of an assignment to `places` on an axis of `length`.

    If several values go to one place, the last value stays.
    """
    writes = Writes(np.zeros(length, np.bool_), np.zeros(length, _dtype_of_places(length)))
    writes.is_written[places.reshape(-1)] = True
    writes.writer[places.reshape(-1)] = np.arange(places.size)  # NumPy assigns in order, so the last value stays
    return writes


def _is_split(items: Sequence[Any]) -> bool:
    """Returns whether other items stand between the integers of a key. An array of integers counts as an integer."""
    places = [place for place, item in enumerate(items) if not (item is None or item is ... or type(item) is slice)]
    return bool(places) and places[-1] - places[0] >= len(places)


def _integer_of(item: Any) -> int | None:
    """Returns the value of an integer of Python, NumPy or another library. Raises ArgumentError for a boolean."""
    if isinstance(item, bool):
        raise ArgumentError("a boolean is a mask, not an index; use where")
    if isinstance(item, Recorded) or getattr(item, "shape", ()) != ():
        return None
    try:
        return operator.index(item)
    except TypeError:
        return None
