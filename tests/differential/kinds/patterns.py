"""How calls are drawn that many names share: elementwise, along axes, of a list, of vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.differential import draw
from tests.differential.calls import Call, as_list
from tests.differential.draw import ALL, NUMBERS, SUMMED, WILD, Values

Random = np.random.Generator
Kind = Callable[[str, Random], Call]


def elements(count: int, among: Sequence[str] = ALL, values: Values = WILD, **options: Any) -> Kind:
    """Operands that broadcast to one another, each of a dtype of its own."""

    def drawn(name: str, random: Random) -> Call:
        whole = draw.shape(random)
        shapes = [whole if count == 1 else draw.thinned(random, whole) for _ in range(count)]
        arrays = (draw.array(random, draw.dtype(random, among), each, values) for each in shapes)
        return Call(name, tuple(arrays), options=options)

    return drawn


def alike(count: int, among: Sequence[str], values: Values = WILD) -> Kind:
    """As `elements`, but of one dtype: those whose pairs promote to a float have no meaning here."""

    def drawn(name: str, random: Random) -> Call:
        whole, dtype = draw.shape(random), draw.dtype(random, among)
        arrays = (draw.array(random, dtype, draw.thinned(random, whole), values) for _ in range(count))
        return Call(name, tuple(arrays))

    return drawn


def reduced(among: Sequence[str] = ALL, values: Values = SUMMED, *, least: int = 0, **more: Sequence[Any]) -> Kind:
    """One operand, along one, several or all axes. `least` is the least size of an axis."""

    def drawn(name: str, random: Random) -> Call:
        x = draw.array(random, draw.dtype(random, among), draw.shape(random, least=least), values)
        options = {"axis": _axes(random, x.ndim), "keepdims": bool(random.random() < 0.5)}
        return Call(name, (x,), options={**options, **_chosen(random, more)})

    return drawn


def _axes(random: Random, rank: int) -> Any:
    if rank == 0 or random.random() < 0.3:
        return None
    if random.random() < 0.5:
        return int(random.integers(-rank, rank))
    return tuple(map(int, random.permutation(rank)[: random.integers(1, rank, endpoint=True)]))


def along(
    among: Sequence[str] = ALL,
    values: Values = WILD,
    *,
    least: int = 0,
    least_rank: int = 1,
    **more: Sequence[Any],
) -> Kind:
    """One operand, along one axis."""

    def drawn(name: str, random: Random) -> Call:
        x = draw.array(
            random, draw.dtype(random, among), draw.shape(random, least_rank=least_rank, least=least), values
        )
        axis = int(random.integers(-x.ndim, x.ndim))
        return Call(name, (x,), options={"axis": axis, **_chosen(random, more)})

    return drawn


def _chosen(random: Random, more: dict[str, Sequence[Any]]) -> dict[str, Any]:
    return {name: values[int(random.integers(len(values)))] for name, values in more.items()}


def shaped(least_rank: int = 0, most_rank: int = draw.MOST_RANK, *rest: Any, least: int = 0, **more: Any) -> Kind:
    """One operand of any dtype and of such a rank; `rest` holds further arguments, or functions that draw them."""

    def drawn(name: str, random: Random) -> Call:
        dims = draw.shape(random, least_rank=least_rank, most_rank=most_rank, least=least)
        x = draw.array(random, draw.dtype(random, ALL), dims)
        arguments = [each(random, dims) if callable(each) else each for each in rest]
        options = {key: each(random, dims) if callable(each) else each for key, each in more.items()}
        return Call(name, (x,), tuple(arguments), options)

    return drawn


def together(least_rank: int = 0, most_rank: int = draw.MOST_RANK, *, with_axis: bool = False) -> Kind:
    """A list of operands of one shape and of any dtypes."""

    def drawn(name: str, random: Random) -> Call:
        dims = draw.shape(random, least_rank=least_rank, most_rank=most_rank)
        arrays = tuple(draw.array(random, draw.dtype(random, ALL), dims) for _ in range(int(random.integers(1, 4))))
        axis = {"axis": int(random.integers(-len(dims), len(dims)))} if with_axis else {}
        return Call(name, arrays, options=axis, placed=as_list)

    return drawn


def product(*subscripts: str, **options: Any) -> Kind:
    """Two operands whose axes have these letters; one letter is one size."""

    def drawn(name: str, random: Random) -> Call:
        chosen = subscripts[int(random.integers(len(subscripts)))]
        sizes = {letter: int(random.choice((0, 1, 2, 3, 7, 16))) for letter in chosen if letter.isalpha()}
        dtype = draw.dtype(random, NUMBERS)
        shapes = [tuple(sizes[letter] for letter in each) for each in chosen.split(",")]
        return Call(name, tuple(draw.array(random, dtype, each, SUMMED) for each in shapes), options=options)

    return drawn


def vectors(count: int, among: Sequence[str] = NUMBERS, values: Values = SUMMED, *, least: int = 1) -> Kind:
    def drawn(name: str, random: Random) -> Call:
        sizes = random.integers(least, 12, count)
        dtype = draw.dtype(random, among)
        return Call(name, tuple(draw.array(random, dtype, (int(size),), values) for size in sizes))

    return drawn


def made(*rest: Any, **options: Any) -> Kind:
    """No operands."""
    return lambda name, random: Call(name, (), rest, options)


def an_axis(random: Random, dims: draw.Shape) -> int:
    return int(random.integers(-len(dims), len(dims)))


def named(kind: Kind, names: str) -> dict[str, Kind]:
    return dict.fromkeys(names.split(), kind)
