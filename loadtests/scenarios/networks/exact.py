"""`exact`: two layers on whole numbers, which nothing rounds, so that NumPy's bits are the right ones."""

from __future__ import annotations

import numpy as np

from loadtests.scenarios.library import Library
from loadtests.scenarios.scenario import Data, Floats, Scenario, Steps

_WIDTH, _LARGEST = 64, 2  # a result is at most 2³ × 64² = 2¹⁵, and float32 holds all whole numbers up to 2²⁴


def _program(xp: Library, data: Data) -> Steps:
    first, second = (xp.asarray(_whole(data.normal(_WIDTH, _WIDTH))) for _ in range(2))
    x = _whole(data.normal(1, _WIDTH))
    while True:
        value = yield xp.relu(xp.asarray(x) @ first) @ second
        x = value % (2 * _LARGEST + 1) - _LARGEST  # NumPy's: what is read decides what is uploaded next


def _whole(numbers: Floats) -> Floats:
    return np.clip(np.rint(numbers), -_LARGEST, _LARGEST)


SCENARIO = Scenario(
    name="exact",
    what=f"two layers of width {_WIDTH} on whole numbers: uploads what the last answer makes of them, reads the answer",
    shows="whether every bit is NumPy's, because no rounding leaves a choice",
    program=_program,
    is_exact=True,
)
