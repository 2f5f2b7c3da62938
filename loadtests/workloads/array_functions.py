"""Calls of array functions whose device time is compared with CuPy's: scans, sorts, sums, random numbers, equations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

_SHAPE = (4096, 1024)
VALUES, PLACES = 1_000_000, 1_000
_SEED = 0
_MANY, _FEW = 20, 4
_SYSTEMS, _UNKNOWNS = 1000, 16

Arrays = tuple[Any, ...]


@dataclass(frozen=True)
class Call:
    """A call of a function. `operands` makes NumPy's arrays, and `expected` computes from them what `seen` should be.

    `seen` is a function of the result. A peer finds a call by its name, so that the name can be sent to its process.
    Both sides time `together` calls at once, because one call's time would be that in which a submission starts and
    ends; of calls that need much memory beside their results, these are few.
    """

    name: str
    operands: Callable[[int], Arrays]  # of a number: other values for each
    expected: Callable[[Arrays], Any]
    ours: Callable[[Any, Arrays], Any]  # of the module fusewire, and arrays on the server
    seen: Callable[[Any], Any] = np.asarray
    tolerance: float = 2e-3
    together: int = _MANY


def _matrix(number: int) -> Arrays:
    return (np.random.default_rng(_SEED + number).standard_normal(_SHAPE, np.float32),)


def _values_at_places(number: int) -> Arrays:
    drawn = np.random.default_rng(_SEED + number)
    return drawn.integers(0, PLACES, VALUES), drawn.standard_normal(VALUES, np.float32)


def _sums(operands: Arrays) -> Any:
    places, values = operands
    return np.bincount(places, values, PLACES)


def _added(fw: Any, operands: Arrays) -> Any:
    places, values = operands
    return fw.zeros_like(values[:PLACES]).at[places].add(values)


def _key(number: int) -> Arrays:
    return (np.array(_SEED + number, np.uint64),)


def _moments(drawn: Any) -> Any:
    return np.array([np.mean(drawn) + 1, np.std(drawn)], np.float32)  # 1 and 1, as a mean of 0 has no relative error


def _drawn(fw: Any, operands: Arrays) -> Any:
    return fw.random.Generator(operands[0]).standard_normal(VALUES, dtype="float32")


def _equations(number: int) -> Arrays:
    drawn = np.random.default_rng(_SEED + number)
    a = drawn.standard_normal((_SYSTEMS, _UNKNOWNS, _UNKNOWNS), np.float32) + _UNKNOWNS * np.eye(
        _UNKNOWNS, dtype=np.float32
    )
    return a, drawn.standard_normal((_SYSTEMS, _UNKNOWNS, 1), np.float32)


CALLS = {
    call.name: call
    for call in (
        Call(
            "cumsum [4096, 1024]",
            _matrix,
            lambda operands: np.cumsum(operands[0], axis=1, dtype=np.float64),
            lambda fw, operands: fw.cumsum(operands[0], axis=1),
        ),
        Call(
            "sort [4096, 1024]",
            _matrix,
            lambda operands: np.sort(operands[0], axis=1),
            lambda fw, operands: fw.sort(operands[0], axis=1),
            together=_FEW,
        ),
        Call("add 1,000,000 values at 1,000 places", _values_at_places, _sums, _added, together=_FEW),
        Call("draw 1,000,000 normal numbers", _key, lambda operands: np.ones(2), _drawn, _moments, tolerance=0.01),
    )
}
EQUATIONS = Call(
    "solve 1,000 times 16 equations",
    _equations,
    lambda operands: np.linalg.solve(*[each.astype(np.float64) for each in operands]),
    lambda fw, operands: fw.linalg.solve(*operands),
)
