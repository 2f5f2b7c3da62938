"""Reads the key of `x[key]` as NumPy does, without side effects.

Integers, slices, `...` and `None` become one region (a slice along several axes) and a new shape. The arrays of
integers in the key become one *gather*: together they select elements along their axes. A mask stands for the arrays of
integers that `numpy.nonzero` returns for it. The starts of slices are not part of the region, so a loop that moves a
window over an array repeats the same op. An index that the client knows must lie in its axis.
"""

from __future__ import annotations

import operator
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fusewire._conversions import Host
from fusewire._errors import ArgumentError, ShapeError
from fusewire._recording.recorded_ops import Recorded, name_of_key
from fusewire._recording.stepped_integer import SteppedInteger
from fusewire_protos.ops import shapes
from fusewire_protos.ops.shapes import Region, Shape


class Gather(NamedTuple):
    """Arrays of integers, each of which selects along one of `axes`, those of the array that region and new shape give.

    `axes` are ascending. Each array of `indices` is on the server, or holds places on this machine: integers from 0 to
    the axis's length − 1. They broadcast to `shape`. If `comes_first`, the axes of `shape` are the first axes of the
    result. As in NumPy, this happens if a slice, `...` or `None` stands between the indices, single integers included.
    """

    axes: Shape
    indices: tuple[Any, ...]
    shape: Shape
    comes_first: bool

    @property
    def joined_axis(self) -> int:
        """Returns which axis an array has in place of `axes` once they are joined.

        Neighbours are joined where they are. Other axes are first moved to the front.
        """
        first, last = self.axes[0], self.axes[-1]
        return first if last - first < len(self.axes) else 0

    @property
    def result_axis(self) -> int:
        """Returns where the axes of `shape` begin in the result."""
        return 0 if self.comes_first else self.joined_axis


class Index(NamedTuple):
    """A key as three steps: take the region, reshape it to the new shape, gather. A step that is None is left out.

    `new_axes` are the axes of the new shape that the array does not have, ascending.
    """

    region: Region | None
    starts: tuple[int, ...]
    new_shape: Shape | None
    gather: Gather | None
    new_axes: tuple[int, ...] = ()

    def selected(self, part: Shape) -> Shape:
        """Returns the shape that the key selects from a region of shape `part`."""
        shape = part if self.new_shape is None else self.new_shape
        if self.gather is None:
            return shape
        others = tuple([dim for axis, dim in enumerate(shape) if axis not in self.gather.axes])
        first = self.gather.result_axis
        return others[:first] + self.gather.shape + others[first:]


@dataclass(frozen=True)
class CountedIndex:  # no tuple, because a tuple is a key of several indices
    """An index that grows by the same step in each iteration of a loop; `array` has it on the server."""

    integer: SteppedInteger
    array: Any


MOST_INDICES = 4096  # such as those of a loop that goes through a sequence
known_indices: dict[tuple[Shape, Hashable], Index] = {}  # by the shape of the array, and the name of the key


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
        self._gathered: list[int] = []
        self._indices: list[Any] = []
        self._new_axes: list[int] = []

    def read(self, item: Any) -> None:
        if item is None:
            self._new_axis()
        elif isinstance(item, slice):
            if isinstance(item.start, CountedIndex) or isinstance(item.stop, CountedIndex):
                self._counted_slice(item)
            else:
                self._slice(item)
        elif isinstance(item, CountedIndex):
            self._counted(item)
        elif (mask := mask_of(item)) is not None:
            self._mask(mask)
        else:
            integer = _integer_of(item)
            if integer is None:
                self._select(item)
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
        return Index(region, tuple(self._starts), new_shape, self._gather(), tuple(self._new_axes))

    def _gather(self) -> Gather | None:
        if not self._indices:
            return None
        shape = _common_shape(list(map(_shape_of, self._indices)))
        return Gather(tuple(self._gathered), tuple(self._indices), shape, self._is_split)

    def _new_axis(self) -> None:
        self._new_axes.append(len(self._result))
        self._result.append(1)

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
            self._select(item.array)  # only a gather can count from the back in some iterations
            return
        self._dropped.append(self._axis)
        self._region(integer, 1, 1)
        self._axis += 1

    def _integer(self, item: int) -> None:
        dim = self._dim()
        if not -dim <= item < dim:
            raise _out_of_range(item, self._axis, dim)
        self._dropped.append(self._axis)
        self._region(item % dim, 1, 1)
        self._axis += 1

    def _select(self, item: Any) -> None:
        dim = self._dim()
        places = _checked(item) if isinstance(item, Recorded) else places_of(item, self._axis, self._shape)
        self._gathered.append(len(self._result))
        self._indices.append(places)
        self._result.append(dim)
        self._axis += 1

    def _mask(self, mask: Host) -> None:
        if not mask.ndim:  # selects all or nothing along an axis of its own
            self._gathered.append(len(self._result))
            self._indices.append(np.flatnonzero(mask).astype(np.int32))
            self._new_axis()
            return
        check_mask(mask.shape, self._shape[self._axis :])
        for places in np.nonzero(mask):
            self._select(places)

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
        if len(known_indices) >= MOST_INDICES:
            known_indices.clear()
        known_indices[shape, name] = index
    return index


def _read(key: Any, shape: Shape) -> Index:
    items = key if isinstance(key, tuple) else (key,)
    consumed = sum(map(_axes_read, items))
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

    Raises IndexError for an index out of range and for what is no integer.
    """
    indices, length = np.asarray(given), shape[axis]
    if not indices.size and isinstance(given, list | tuple):  # NumPy makes an empty list an array of floats
        indices = indices.astype(np.int64)
    if indices.dtype.kind not in "iu":
        raise _no_index(indices.dtype.name)
    for extreme in (int(indices.min()), int(indices.max())) if indices.size else ():
        if not -length <= extreme < length:
            raise _out_of_range(extreme, axis, length)
    places = indices.astype(np.int64)
    return np.where(places < 0, places + length, places).astype(dtype_of_places(length))


def dtype_of_places(length: int) -> type[np.signedinteger[Any]]:
    return np.int32 if length < 1 << 31 else np.int64


def check_mask(mask: Shape, shape: Shape) -> None:
    """Raises IndexError if a mask of shape `mask` does not have the shape of the first axes of `shape`.

    As in NumPy, an axis of the mask without elements fits every axis.
    """
    if len(mask) > len(shape) or any(own not in (0, dim) for own, dim in zip(mask, shape, strict=False)):
        raise IndexError(f"a mask of shape {mask} does not fit {shape}: it must have the shape of the first axes")


def mask_of(item: Any) -> Host | None:
    """Returns an item of a key as an array of booleans on this machine, or None if it is no such mask."""
    if isinstance(item, bool):
        return np.array(item)
    if isinstance(item, list | np.ndarray | np.bool_):
        host = np.asarray(item)
        return host if host.dtype == np.bool_ else None
    return None


def _axes_read(item: Any) -> int:
    """Returns how many axes of the array an item of a key reads."""
    if item is None or item is Ellipsis:
        return 0
    mask = mask_of(item)
    return 1 if mask is None else mask.ndim


def _shape_of(indices: Any) -> Shape:
    shape: Shape = indices._spec.shape if isinstance(indices, Recorded) else indices.shape
    return shape


def _common_shape(given: Sequence[Shape]) -> Shape:
    try:
        return shapes.broadcast(*given)
    except ShapeError:
        named = ", ".join(map(str, given))
        raise IndexError(f"the arrays of an index have shapes that do not broadcast: {named}") from None


def _checked(item: Recorded) -> Recorded:
    if not item._spec.dtype.is_integer:
        raise _no_index(item._spec.dtype.name)
    return item


def _no_index(given: str) -> IndexError:
    return IndexError(
        f"an index is an integer, a slice, `...`, None, or an array of integers or booleans; this one is {given}"
    )


def _out_of_range(index: int, axis: int, length: int) -> IndexError:
    return IndexError(f"index {index} is out of range for axis {axis} of length {length}")


def _is_split(items: Sequence[Any]) -> bool:
    """Returns whether other items stand between the integers of a key. Arrays of integers and masks count as such."""
    places = [place for place, item in enumerate(items) if not (item is None or item is ... or type(item) is slice)]
    return bool(places) and places[-1] - places[0] >= len(places)


def _integer_of(item: Any) -> int | None:
    """Returns the value of an integer of Python, NumPy or another library, or None."""
    if isinstance(item, Recorded) or getattr(item, "shape", ()) != ():
        return None
    try:
        return operator.index(item)
    except TypeError:
        return None
