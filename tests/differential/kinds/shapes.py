"""Calls of functions that move elements, join arrays and divide them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.differential import draw
from tests.differential.calls import Call
from tests.differential.draw import ALL, WILD
from tests.differential.kinds.patterns import (
    Kind,
    Random,
    an_axis,
    named,
    product,
    shaped,
    together,
    vectors,
)


def _into(random: Random, dims: draw.Shape) -> draw.Shape:
    """A shape of as many elements, some axes merged and one of size 1 added."""
    count = int(np.prod(dims, dtype=int))
    return (1, count) if random.random() < 0.5 or not dims else (dims[0], count // dims[0] if dims[0] else 0)


def _wider(random: Random, dims: draw.Shape) -> draw.Shape:
    grown = tuple(2 if size == 1 else size for size in dims)
    return (3, *grown) if len(dims) < draw.MOST_RANK else grown


def _widths(random: Random, dims: draw.Shape) -> list[tuple[int, int]]:
    return [(int(random.integers(0, 3)), int(random.integers(0, 3))) for _ in dims]


def _small(random: Random, dims: draw.Shape) -> int:
    return int(random.integers(-2, 3))


def _times(random: Random, dims: draw.Shape) -> draw.Shape:
    return tuple(int(random.integers(0, 3)) for _ in dims)


def _other_shape(random: Random, dims: draw.Shape) -> draw.Shape:
    return draw.shape(random, most_rank=4)


def _parts(axis: int) -> Callable[[Random, draw.Shape], list[int]]:
    return lambda random, dims: sorted(int(random.integers(0, dims[axis] + 1)) for _ in range(2))


KINDS: dict[str, Kind] = {
    **named(shaped(), "ravel atleast_1d atleast_2d atleast_3d transpose permute_dims"),
    **named(shaped(2), "matrix_transpose fliplr flipud rot90 tril triu diagonal"),
    **named(shaped(1, 2), "diag"),
    "trace": product("ab", "abc"),
    "reshape": shaped(0, 8, _into),
    "broadcast_to": shaped(0, 8, _wider),
    "expand_dims": shaped(0, 7, axis=0),
    "squeeze": shaped(0, 8),
    "swapaxes": shaped(1, 8, an_axis, an_axis),
    "moveaxis": shaped(1, 8, an_axis, an_axis),
    "rollaxis": shaped(1, 8, an_axis),
    "resize": shaped(0, 8, _other_shape),
    "diagflat": shaped(0, 2, _small),
    "roll": shaped(1, 8, _small, axis=an_axis),
    "pad": shaped(1, 6, _widths, least=1),
    "tile": shaped(0, 5, _times),
    "repeat": shaped(1, 6, 2, axis=an_axis),
    "split": shaped(1, 8, _parts(0)),
    "vsplit": shaped(2, 8, _parts(0)),
    "hsplit": shaped(2, 8, _parts(1)),
    "dsplit": shaped(3, 8, _parts(2)),
    "array_split": shaped(1, 8, 3),
    **named(together(1, with_axis=True), "concat concatenate"),
    "stack": together(1, 7, with_axis=True),
    **named(together(1, 6), "hstack vstack dstack"),
    "column_stack": together(1, 2),
    "meshgrid": lambda name, random: Call(name, vectors(3, ALL, WILD)(name, random).arrays, options={"indexing": "ij"}),
}
