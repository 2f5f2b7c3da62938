"""`unequal`: sessions that always have work, with rows that cost 1, 2, 4 and 8 times as much."""

from __future__ import annotations

from loadtests.scenarios.library import Library
from loadtests.scenarios.scenario import Data, Scenario, Steps

_ELEMENTS = 1 << 14
_COSTS = (1, 2, 4, 8)
_READ_EVERY = 100


def _program(xp: Library, data: Data) -> Steps:
    elements = _ELEMENTS * _COSTS[data.session % len(_COSTS)]
    x, b = xp.asarray(data.normal(elements)), xp.asarray(data.normal(elements))
    step = 0
    while True:
        for _ in range(8):
            x = xp.tanh(x + b)
        step += 1
        yield x[0] if step % _READ_EVERY == 0 else None


SCENARIO = Scenario(
    name="unequal",
    what=f"pointwise loops over {', '.join(str(_ELEMENTS * cost) for cost in _COSTS)} elements, never waiting for long",
    shows="whether sessions get equal device time, however much a row of each costs",
    program=_program,
)
