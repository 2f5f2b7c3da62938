"""`cold`: loops that the server has never seen, five iterations of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loadtests.scenarios.library import Library
from loadtests.scenarios.scenario import Data, Scenario, Steps

_WIDTH = 64
_OPS = 12  # of a loop body
_ITERATIONS = 5


def _program(xp: Library, data: Data) -> Steps:
    weights, bias = xp.asarray(data.weights(_WIDTH, _WIDTH)), xp.asarray(data.normal(_WIDTH))
    start = xp.asarray(data.normal(1, _WIDTH))
    ops: tuple[Callable[[Any], Any], ...] = (
        lambda x: x @ weights,
        lambda x: x + bias,
        lambda x: x * bias,
        lambda x: -x,
        xp.tanh,
        xp.sigmoid,
    )
    while True:
        body = [ops[number] for number in data.random.integers(len(ops), size=_OPS)]
        x = start
        for _ in range(_ITERATIONS):
            for op in body:
                x = op(x)
            x = xp.tanh(x)
        yield x


SCENARIO = Scenario(
    name="cold",
    what=f"a new loop of {_OPS} ops drawn at random in each step, {_ITERATIONS} iterations, then read",
    shows="the latency of programs that the server has no plan for",
    program=_program,
    sessions=2,
    needs_plans=False,
)
