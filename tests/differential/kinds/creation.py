"""Calls of functions that make arrays of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.differential import draw
from tests.differential.calls import Call
from tests.differential.draw import NUMBERS, SUMMED, Values
from tests.differential.kinds.patterns import (
    Kind,
    Random,
    made,
    named,
    shaped,
    vectors,
)


def _grid(name: str, random: Random) -> Call:
    ends = random.integers(-20, 20, 2) * 0.5
    low, high = (float(each) for each in (np.abs(ends) + 1 if name == "geomspace" else ends / 4))
    return Call(name, (), (low, high, int(random.integers(0, 12))), {"endpoint": bool(random.random() < 0.5)})


def _side(random: Random, dims: draw.Shape) -> int:
    return int(random.integers(-3, 4))


def _on_a_square(name: str, random: Random) -> Call:
    return Call(name, (np.zeros((int(random.integers(1, 5)),) * int(random.integers(2, 5))),))


def _of_points(name: str, random: Random) -> Call:
    return Call(name, (), (int(random.integers(0, 12)), *((2.5,) if name == "kaiser" else ())))


def _polynomial(name: str, random: Random) -> Call:
    dtype = draw.dtype(random, NUMBERS)
    coefficients = draw.array(random, dtype, (int(random.integers(0, 4)),), SUMMED)
    return Call(name, (coefficients, draw.array(random, dtype, draw.shape(random), SUMMED)))


def _sum_of_places(*places: Any) -> Any:
    return sum(places)


KINDS: dict[str, Kind] = {
    "eye": made(4, 5, k=1),
    "identity": made(4),
    "tri": made(4, 5, -1),
    "zeros": made((2, 0, 3), dtype="int8"),
    "ones": made((2, 3), dtype="float16"),
    "full": made((2, 3), 7, dtype="int16"),
    "full_like": shaped(0, 8, 1),
    "fromfunction": made(_sum_of_places, (2, 3), dtype="int32"),
    "indices": made((2, 0, 3), dtype="int16"),
    "diag_indices": made(3, 3),
    "diag_indices_from": _on_a_square,
    **named(made(4, -1, 5), "tril_indices triu_indices"),
    **named(shaped(2, 2, _side), "tril_indices_from triu_indices_from"),
    **named(_of_points, "bartlett blackman hamming hanning kaiser"),
    "polyval": _polynomial,
    "vander": vectors(1, NUMBERS, Values(3, is_special=False)),
    "arange": made(3, 40, 7),
    **named(_grid, "linspace logspace geomspace"),
}
