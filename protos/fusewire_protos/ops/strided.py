"""Strided views: which elements of an array in row-major order a view shows. Sizes are Python integers."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from fusewire_protos.errors import ArgumentError, ShapeError
from fusewire_protos.ops.shapes import Shape


class Strided(NamedTuple):
    """Element (i, j, …) of the view is element `start + i·strides[0] + j·strides[1] + …` of the array.

    The elements of the array are counted in row-major order, from 0. The start is a binding and no part of the
    structure. A stride may be 0 or negative, and several elements of a view may be one element of the array.
    """

    shape: Shape
    strides: Shape


def reach(part: Strided) -> tuple[int, int]:
    """Returns the distances of the first and the last element that the view shows from its start."""
    spans = [stride * max(dim - 1, 0) for dim, stride in zip(part.shape, part.strides, strict=True)]
    return sum(span for span in spans if span < 0), sum(span for span in spans if span > 0)


def check(shape: Shape, part: Strided) -> None:
    """Raises ShapeError unless the view lies inside an array of `shape` for some start."""
    if len(part.shape) != len(part.strides):
        raise ShapeError(f"a view of {len(part.shape)} axes has {len(part.strides)} strides")
    low, high = reach(part)
    if 0 not in part.shape and high - low >= prod(shape):
        raise ShapeError(
            f"a view of shape {part.shape} and strides {part.strides} spans {high - low + 1} elements, "
            f"but an array of shape {shape} has {prod(shape)}"
        )


def check_start(shape: Shape, part: Strided, start: int) -> None:
    """Raises ArgumentError unless the view that begins at `start` lies inside an array of `shape`."""
    low, high = reach(part)
    if 0 not in part.shape and (start + low < 0 or start + high >= prod(shape)):
        raise ArgumentError(
            f"a view of shape {part.shape} and strides {part.strides} that begins at element {start} "
            f"exceeds the {prod(shape)} elements of an array of shape {shape}"
        )


def check_distinct(part: Strided) -> None:
    """Raises ShapeError if two elements of the view may be one element of the array.

    Refuses every such view, and a few others: in order of strides, each must step over all that lies within the ones
    before. An exact answer for many axes would have to solve a knapsack problem.
    """
    reached = 0
    for stride, dim in sorted((abs(stride), dim) for dim, stride in zip(part.shape, part.strides, strict=True)):
        if dim > 1 and stride <= reached and 0 not in part.shape:
            raise ShapeError(f"a view of shape {part.shape} and strides {part.strides} may show an element twice")
        reached += stride * max(dim - 1, 0)


def only_start(shape: Shape, part: Strided) -> int | None:
    """Returns the start of a view that spans the array from end to end; None if several starts are legal."""
    low, high = reach(part)
    return -low if 0 not in part.shape and high - low == prod(shape) - 1 else None
