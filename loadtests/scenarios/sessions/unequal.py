"""`unequal`: sessions that always have rows waiting. The rows of some sessions cost 2, 4 or 8 times as much."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future
from itertools import count
from typing import Any

from loadtests.scenarios.library import Library
from loadtests.scenarios.scenario import Data, Scenario, Steps

_ELEMENTS = 1 << 13
_COSTS = (1, 2, 4, 8)
_OPS = 32  # in a row
_WAITING = 4  # rows that wait while the program records the next one
_READ_EVERY = 50


def _program(xp: Library, data: Data) -> Steps:
    elements = _ELEMENTS * _COSTS[data.session % len(_COSTS)]
    x, b = xp.asarray(data.normal(elements)), xp.asarray(data.normal(elements))
    waiting: deque[Future[Any]] = deque()
    for step in count(1):
        for _ in range(_OPS // 2):
            x = xp.tanh(x + b)
        waiting.append(xp.request(x[:1]))  # asking for a value ends the row
        if len(waiting) > _WAITING:
            waiting.popleft().result()
        yield x if step % _READ_EVERY == 0 else None


SCENARIO = Scenario(
    name="unequal",
    what=f"rows of {_OPS} pointwise ops on {_ELEMENTS} elements, or on 2, 4 or 8 times as many; {_WAITING} rows wait",
    shows="whether sessions get equal device time, however much a row of each costs",
    program=_program,
)
