"""Says how an op that computes several arrays holds them in its one result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any, NamedTuple

from fusewire_protos.ops.shapes import Shape


class Part(NamedTuple):
    """One of several arrays: its `length` elements from `start` on, along the last axis of what holds them."""

    start: int
    length: int
    shape: Shape


class Results(NamedTuple):
    """Several arrays of these `shapes`, for each place along the axes `batch`. All have one dtype.

    An op that computes them has one result of the shape `packed`. Along its last axis they lie one behind the other,
    each in row-major order.
    """

    batch: Shape
    shapes: tuple[Shape, ...]

    @property
    def packed(self) -> Shape:
        return (*self.batch, sum(map(prod, self.shapes)))

    def parts(self) -> Iterator[Part]:
        """Yields where each of the arrays lies. With the axes `batch`, its shape is that of the whole."""
        start = 0
        for shape in self.shapes:
            length = prod(shape)
            yield Part(start, length, (*self.batch, *shape))
            start += length


ResultsRule = Callable[[tuple[Shape, ...], tuple[Any, ...]], Results]  # (shapes of operands, attributes) -> results
