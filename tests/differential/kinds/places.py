"""Calls of functions that take elements from places, find places, and write to them."""

from __future__ import annotations

import numpy as np

from tests.differential import draw
from tests.differential.calls import Call
from tests.differential.draw import ALL, DISTINCT_ENOUGH, INTEGERS, NUMBERS, TAME, WILD, Values
from tests.differential.kinds.patterns import Kind, Random, elements, named, shaped, vectors

_FEW = Values(9, is_special=False)


def _take(name: str, random: Random) -> Call:
    x = draw.array(random, draw.dtype(random, ALL), draw.shape(random, least_rank=1, most_rank=6, least=1))
    axis = int(random.integers(-x.ndim, x.ndim))
    places = random.integers(0, x.shape[axis], draw.shape(random, most_rank=2))
    return Call(name, (x, np.asarray(places)), options={"axis": axis})


def _take_along(name: str, random: Random) -> Call:
    x = draw.array(random, draw.dtype(random, ALL), draw.shape(random, least_rank=1, least=1))
    axis = int(random.integers(-x.ndim, x.ndim))
    return Call(name, (x, random.integers(0, x.shape[axis], x.shape)), options={"axis": axis})


def _put_along(name: str, random: Random) -> Call:
    """No index occurs twice along the axis: which of two values stays is not defined."""
    x = draw.array(random, draw.dtype(random, ALL), draw.shape(random, least_rank=1, least=1))
    axis = int(random.integers(-x.ndim, x.ndim))
    places = random.permuted(np.indices(x.shape)[axis], axis=axis)
    values = draw.array(random, str(x.dtype), x.shape)
    return Call(name, (x, places, values), options={"axis": axis}, writes=True)


def _search(name: str, random: Random) -> Call:
    dtype = draw.dtype(random, NUMBERS)
    line = np.sort(draw.array(random, dtype, (int(random.integers(0, 12)),), DISTINCT_ENOUGH))
    v = draw.array(random, dtype, draw.shape(random), DISTINCT_ENOUGH)
    if name == "digitize":
        return Call(name, (v, line[~np.isnan(line)]), options={"right": bool(random.random() < 0.5)})
    return Call(name, (line, v), options={"side": str(random.choice(("left", "right")))})


def _interp(name: str, random: Random) -> Call:
    x = draw.array(random, "float64", draw.shape(random), TAME)
    places = np.sort(random.choice(2000, 9, replace=False) - 1000.0)
    return Call(name, (x, places, draw.array(random, "float64", (9,), TAME)))


def _counted(name: str, random: Random) -> Call:
    return Call(name, (random.integers(0, 9, int(random.integers(1, 30))),))


def _choose(name: str, random: Random) -> Call:
    whole, count = draw.shape(random), int(random.integers(1, 5))
    chosen = random.integers(-9, 9, draw.thinned(random, whole))
    choices = [draw.array(random, draw.dtype(random, ALL), draw.thinned(random, whole)) for _ in range(count)]
    mode = str(random.choice(("wrap", "clip")))
    return Call(name, (np.asarray(chosen), *choices), (), {"mode": mode}, lambda given: (given[0], [*given[1:]]))


def _select(name: str, random: Random) -> Call:
    whole, dtype, count = draw.shape(random), draw.dtype(random, ALL), int(random.integers(1, 4))
    conditions = [draw.array(random, "bool", draw.thinned(random, whole)) for _ in range(count)]
    choices = [draw.array(random, dtype, draw.thinned(random, whole)) for _ in range(count)]
    return Call(
        name, (*conditions, *choices), (1,), placed=lambda given: ([*given[: len(given) // 2]], [*given[count:]])
    )


def _pieces(name: str, random: Random) -> Call:
    x = draw.array(random, draw.dtype(random, NUMBERS), draw.shape(random))
    masks = [draw.array(random, "bool", x.shape) for _ in range(int(random.integers(1, 4)))]
    functions = [7, abs, 3, 1][: len(masks) + int(random.integers(0, 2))]
    return Call(name, (x, *masks), (functions,), placed=lambda given: (given[0], [*given[1:]]))


def _copied(name: str, random: Random) -> Call:
    dtype, whole = draw.dtype(random, ALL), draw.shape(random)
    x, values = (draw.array(random, dtype, dims) for dims in (whole, draw.thinned(random, whole)))
    return Call(name, (x, values), writes=True)


def _masked(name: str, random: Random) -> Call:
    """Writes to the places of a mask. The values are of any number but 0."""
    dtype, whole = draw.dtype(random, ALL), draw.shape(random)
    values = draw.array(random, dtype, (int(random.integers(1, 9)),))
    return Call(name, (draw.array(random, dtype, whole), draw.array(random, "bool", whole), values), writes=True)


def _put(name: str, random: Random) -> Call:
    dtype = draw.dtype(random, ALL)
    x = draw.array(random, dtype, draw.shape(random, least=1))
    places = random.choice(x.size, int(random.integers(0, x.size, endpoint=True)), replace=False)
    values = draw.array(random, dtype, (int(random.integers(1, 9)),))
    return Call(name, (x, places, values), (), {"mode": str(random.choice(("raise", "wrap", "clip")))}, writes=True)


def _on_diagonal(name: str, random: Random) -> Call:
    dtype, length = draw.dtype(random, ALL), int(random.integers(1, 4))
    matrix, cube = (int(random.integers(1, 9)), length), (length,) * int(random.integers(2, 5))
    dims = matrix if random.random() < 0.5 else cube
    values = draw.array(random, dtype, (int(random.integers(1, 5)),))
    wrap = bool(random.random() < 0.5)
    return Call(name, (draw.array(random, dtype, dims), values), (), {"wrap": wrap}, writes=True)


def _raveled(name: str, random: Random) -> Call:
    dims = draw.shape(random, least_rank=1, least=1)
    places = tuple(random.integers(0, size, 5) for size in dims)
    return Call(name, places, (dims,), placed=lambda given: (tuple(given),))


def _unraveled(name: str, random: Random) -> Call:
    dims = draw.shape(random, least_rank=1, least=1)
    places = random.integers(0, int(np.prod(dims)), draw.shape(random, most_rank=3))
    return Call(name, (np.asarray(places),), (dims,))


def _inserted(name: str, random: Random) -> Call:
    """One block of values before one place, or one value before each of several places."""
    x = draw.array(random, draw.dtype(random, ALL), draw.shape(random, least_rank=1, most_rank=6))
    axis = int(random.integers(-x.ndim, x.ndim))
    length = x.shape[axis]
    places = random.integers(-length, length, int(random.integers(0, 4)), endpoint=True)
    at = [*map(int, places)] if random.random() < 0.5 else int(random.integers(-length, length, endpoint=True))
    values = draw.array(random, str(x.dtype), ())
    return Call(name, (x, values), (), {"axis": axis}, lambda given: (given[0], at, given[1]))


def _deleted(name: str, random: Random) -> Call:
    x = draw.array(random, draw.dtype(random, ALL), draw.shape(random, least_rank=1, most_rank=6, least=1))
    axis = int(random.integers(-x.ndim, x.ndim))
    length = x.shape[axis]
    ways = (int(random.integers(-length, length)), slice(None, None, 2), [*map(int, random.integers(0, length, 2))])
    return Call(name, (x,), (ways[int(random.integers(len(ways)))],), {"axis": axis})


def _blocks(name: str, random: Random) -> Call:
    rows, columns = (tuple(map(int, random.integers(0, 4, 2))) for _ in range(2))
    dims = [(row, column) for row in rows for column in columns]
    parts = tuple(draw.array(random, draw.dtype(random, ALL), each) for each in dims)
    return Call(name, parts, placed=lambda given: ([[*given[:2]], [*given[2:]]],))


KINDS: dict[str, Kind] = {
    "take": _take,
    "take_along_axis": _take_along,
    "put_along_axis": _put_along,
    "searchsorted": _search,
    "digitize": _search,
    "interp": _interp,
    "bincount": _counted,
    "choose": _choose,
    "select": _select,
    "piecewise": _pieces,
    "copyto": _copied,
    **named(_masked, "place putmask"),
    "put": _put,
    "fill_diagonal": _on_diagonal,
    "ravel_multi_index": _raveled,
    "unravel_index": _unraveled,
    "ix_": vectors(2, INTEGERS),
    "insert": _inserted,
    "delete": _deleted,
    "block": _blocks,
    **named(elements(1), "argwhere flatnonzero"),
    "nonzero": shaped(1),
    **named(vectors(1, NUMBERS, _FEW), "unique unique_counts unique_inverse unique_all trim_zeros"),
    **named(vectors(2, NUMBERS, _FEW), "union1d intersect1d setdiff1d setxor1d"),
    "append": vectors(2, ALL, WILD),
    "astype": shaped(0, 8, "float64"),
}
