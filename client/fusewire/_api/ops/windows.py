"""Windows over the spatial axes of an array: their padding, how many there are, and the view of their elements."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple, SupportsIndex

from fusewire._api.array import Array
from fusewire._api.ops.filled import filled
from fusewire._api.ops.operations import integers_of
from fusewire._api.ops.strided import strides_of, view_of
from fusewire._errors import ArgumentError, ShapeError
from fusewire_protos.ops.shapes import Shape

Numbers = SupportsIndex | Sequence[SupportsIndex]  # one for all spatial axes, or one for each
Pairs = tuple[tuple[int, int], ...]  # what is ahead of and behind each spatial axis

LEADING = 2  # the axes ahead of the spatial ones: batch and channels
MOST_SPATIAL = 3


class Axis(NamedTuple):
    """The windows along one spatial axis: how many elements each has, how far these and the windows are apart."""

    extent: int
    stride: int = 1
    dilation: int = 1

    @property
    def span(self) -> int:
        """Returns how many elements lie between the ends of a window, both included."""
        return (self.extent - 1) * self.dilation + 1

    def windows_in(self, length: int) -> int:
        """Returns how many windows lie within so many elements."""
        return (length - self.span) // self.stride + 1


def spatial_rank(x: Array, name: str) -> int:
    """Returns the number of spatial axes of an array [batch, channels, *spatial]. Raises ShapeError."""
    rank = x.ndim - LEADING
    if not 1 <= rank <= MOST_SPATIAL:
        raise ShapeError(
            f"{name} takes [batch, channels, *spatial] with 1 to {MOST_SPATIAL} spatial axes, not shape {x.shape}"
        )
    return rank


def for_each(given: Numbers, rank: int, name: str, least: int) -> tuple[int, ...]:
    """Returns one number for each spatial axis. Raises ArgumentError for another count, or one below `least`."""
    numbers = tuple([operator.index(each) for each in integers_of(given)])
    if not isinstance(given, Sequence):
        numbers *= rank
    if len(numbers) != rank:
        raise ArgumentError(f"{name} = {given!r} has {len(numbers)} numbers for {rank} spatial axes")
    for axis, number in enumerate(numbers):
        if number < least:
            raise ArgumentError(f"{name} is {number} along spatial axis {axis}, and must be at least {least}")
    return numbers


def padding_of(given: Any, lengths: Shape, axes: Sequence[Axis]) -> Pairs:
    """Returns how many elements `padding` adds ahead of and behind each spatial axis of these lengths.

    It is a number for all ends, "valid" for none, "same" for as many as make a window for each stride of an axis (of an
    odd number one more stands behind), or for each axis a number or a pair (ahead, behind). Raises ArgumentError.
    """
    if given == "valid":
        return ((0, 0),) * len(axes)
    if given == "same":
        return tuple([_same(length, axis) for length, axis in zip(lengths, axes, strict=True)])
    if isinstance(given, str):
        raise ArgumentError(f"padding = {given!r} is none of 'same', 'valid', a number and pairs of numbers")
    ends = [given] * len(axes) if hasattr(given, "__index__") else [*given]
    if len(ends) != len(axes):
        raise ArgumentError(f"padding = {given!r} has {len(ends)} entries for {len(axes)} spatial axes")
    return tuple([_pair(each, axis) for axis, each in enumerate(ends)])


def _same(length: int, axis: Axis) -> tuple[int, int]:
    windows = -(-length // axis.stride)
    missing = max((windows - 1) * axis.stride + axis.span - length, 0)
    return missing // 2, missing - missing // 2


def _pair(given: Any, axis: int) -> tuple[int, int]:
    numbers = [operator.index(each) for each in integers_of(given)]
    if len(numbers) == 1:
        numbers *= 2
    if len(numbers) != 2:
        raise ArgumentError(f"padding of spatial axis {axis} is {given!r}, and not a number or a pair")
    if min(numbers) < 0:
        raise ArgumentError(f"padding is {min(numbers)} along spatial axis {axis}, and must be at least 0")
    return numbers[0], numbers[1]


def padded(x: Array, ends: Pairs, value: float) -> Array:
    """Returns `x` with elements of one value at the ends of its spatial axes. A negative number takes elements away."""
    lengths = x.shape[LEADING:]
    kept = [slice(max(-ahead, 0), dim + min(behind, 0)) for dim, (ahead, behind) in zip(lengths, ends, strict=True)]
    if kept != [slice(0, dim) for dim in lengths]:
        x = x[:, :, *kept]
    places = [
        slice(max(ahead, 0), max(ahead, 0) + dim) for dim, (ahead, _) in zip(x.shape[LEADING:], ends, strict=True)
    ]
    shape = [place.stop + max(behind, 0) for place, (_, behind) in zip(places, ends, strict=True)]
    if tuple(shape) == x.shape[LEADING:]:
        return x
    return filled(x.session, (*x.shape[:LEADING], *shape), value, x.dtype).at[:, :, *places].set(x)


def check_fits(lengths: Shape, axes: Sequence[Axis], name: str) -> None:
    """Raises ShapeError unless a window fits into axes of these lengths, which include the padding."""
    for number, (length, axis) in enumerate(zip(lengths, axes, strict=True)):
        if axis.extent < 1:
            raise ShapeError(f"{name}: the window has {axis.extent} elements along spatial axis {number}")
        if axis.span > length:
            raise ShapeError(
                f"{name}: the window spans {axis.span} elements along spatial axis {number}, "
                f"which has {length} with its padding"
            )


def windows(x: Array, axes: Sequence[Axis]) -> Array:
    """Returns the view [batch, channels, *window, *places] of all windows of `x`."""
    strides = strides_of(x.shape)
    counts = [axis.windows_in(length) for axis, length in zip(axes, x.shape[LEADING:], strict=True)]
    shape = (*x.shape[:LEADING], *[axis.extent for axis in axes], *counts)
    steps = list(zip(axes, strides[LEADING:], strict=True))
    within = [axis.dilation * stride for axis, stride in steps]
    between = [axis.stride * stride for axis, stride in steps]
    return view_of(x, shape, (*strides[:LEADING], *within, *between), 0)
