"""Draws arrays: shapes of rank 0 to 8 with sizes 0 and 1 among them, all dtypes that NumPy has, and special values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Host = npt.NDArray[Any]
Shape = tuple[int, ...]

FLOATS = ("float16", "float32", "float64")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
NUMBERS = FLOATS + INTEGERS
ALL = (*NUMBERS, "bool")
MOST_RANK = 8
_SIZES, _SIZE_SHARES = (0, 1, 2, 3, 7), (0.05, 0.3, 0.35, 0.2, 0.1)
_MOST_ELEMENTS = 300
_SPECIAL_SHARE = 0.2


class Values(NamedTuple):
    """Which values elements have: whole numbers up to `bound` are exact in sums; else all of the dtype's range."""

    bound: int | None = None
    is_special: bool = True  # NaN, infinities, zeros of both signs, subnormals and extremes are among them


WILD, PLAIN, TAME = Values(), Values(is_special=False), Values(1000, is_special=False)
# Sums of these round nothing, so that their order says nothing, and are infinite or NaN in any order.
SUMMED = Values(4)
DISTINCT_ENOUGH = Values(50)


def shape(random: np.random.Generator, *, least_rank: int = 0, most_rank: int = MOST_RANK, least: int = 0) -> Shape:
    """Returns a shape of few elements."""
    while True:
        rank = int(random.integers(least_rank, most_rank, endpoint=True))
        sizes = random.choice(_SIZES, rank, p=_SIZE_SHARES)
        if np.prod(sizes, dtype=int) <= _MOST_ELEMENTS and (sizes >= least).all():
            return tuple(map(int, sizes))


def thinned(random: np.random.Generator, whole: Shape) -> Shape:
    """Returns a shape that broadcasts to the whole one: some sizes are 1, and the first ones may be left out."""
    sizes = [1 if random.random() < 0.3 else size for size in whole]
    return tuple(sizes[int(random.integers(0, len(sizes), endpoint=True)) :]) if random.random() < 0.3 else tuple(sizes)


def dtype(random: np.random.Generator, among: Sequence[str]) -> str:
    """Returns one of the dtypes; floats are drawn as often as all others together."""
    floats = [each for each in among if each in FLOATS]
    return str(random.choice(floats if floats and random.random() < 0.5 else among))


@np.errstate(all="ignore")
def array(random: np.random.Generator, name: str, dims: Shape, values: Values = WILD) -> Host:
    """Returns an array of this dtype and shape."""
    target = np.dtype(name)
    if target.kind == "b":
        return random.random(dims) < 0.5
    drawn = _floats(random, target, dims, values) if target.kind == "f" else _integers(random, target, dims, values)
    if not values.is_special:
        return drawn
    specials = np.array(_specials(target, values), target)
    return np.asarray(np.where(random.random(dims) < _SPECIAL_SHARE, random.choice(specials, dims), drawn))


def _floats(random: np.random.Generator, target: np.dtype[Any], dims: Shape, values: Values) -> Host:
    if values.bound is not None:
        return np.asarray(random.integers(-values.bound, values.bound, dims, endpoint=True)).astype(target)
    scale = float(random.choice((0.01, 1.0, 30.0)))
    return np.asarray(random.normal(scale=scale, size=dims)).astype(target)


def _integers(random: np.random.Generator, target: np.dtype[Any], dims: Shape, values: Values) -> Host:
    limits = np.iinfo(target)
    bound = 100 if values.bound is None else min(values.bound, int(limits.max))
    low = max(int(limits.min), -bound)
    return np.asarray(random.integers(low, bound, dims, endpoint=True)).astype(target)


def _specials(target: np.dtype[Any], values: Values) -> list[Any]:
    if target.kind != "f":
        limits = np.iinfo(target)
        return [0, 1, limits.min, limits.max, limits.max - 1]
    common = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan]
    if values.bound is not None:
        return common
    floats = np.finfo(target)
    return [*common, floats.max, floats.min, floats.tiny, floats.smallest_subnormal, -floats.smallest_subnormal]
