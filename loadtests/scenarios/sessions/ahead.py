"""`ahead`: a producer that is always as far ahead of the device as it may be."""

from __future__ import annotations

from itertools import count

from loadtests.scenarios.library import Library
from loadtests.scenarios.scenario import Data, Scenario, Steps

_ELEMENTS = 1 << 18  # 1 MiB of float32
_READ_EVERY = 1000


def _program(xp: Library, data: Data) -> Steps:
    x, b, z = (xp.asarray(data.normal(_ELEMENTS)) for _ in range(3))
    for step in count(1):
        y = x * z
        y = y + b
        y = y * 0.5
        x = xp.tanh(y)
        yield x if step % _READ_EVERY == 0 else None


SCENARIO = Scenario(
    name="ahead",
    what=f"a loop over arrays of 1 MiB that is read after each {_READ_EVERY} steps",
    shows="whether the memory of both sides stays flat, however far ahead a program runs",
    program=_program,
    sessions=1,
)
