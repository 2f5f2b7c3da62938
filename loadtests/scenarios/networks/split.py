"""`split`: sixteen slices of an array, each normalised by itself, joined again and multiplied."""

from __future__ import annotations

from typing import Any

from loadtests.scenarios.library import Library
from loadtests.scenarios.scenario import Data, Scenario, Steps

_PARTS, _ROWS, _WIDTH = 16, 16, 64


def _program(xp: Library, data: Data) -> Steps:
    weights, bias = xp.asarray(data.weights(_WIDTH, _WIDTH)), xp.asarray(data.normal(_WIDTH) / 10)
    inputs = [xp.asarray(data.normal(_PARTS * _ROWS, _WIDTH)) for _ in range(4)]
    while True:
        for x in inputs:
            parts = [x[part * _ROWS : (part + 1) * _ROWS] for part in range(_PARTS)]
            joined = xp.concat([xp.tanh(_layer_norm(xp, part)) for part in parts])
            yield xp.relu(joined @ weights + bias)[0]


def _layer_norm(xp: Library, x: Any) -> Any:
    centred = x - x.mean(axis=1, keepdims=True)
    variance = (centred * centred).mean(axis=1, keepdims=True)
    return centred / xp.sqrt(variance + 1e-5)


SCENARIO = Scenario(
    name="split",
    what=f"{_PARTS} slices of {_ROWS} × {_WIDTH}: layer norm and tanh of each, concatenation, a layer; reads one row",
    shows="whether equal work in one program becomes rows of one launch",
    program=_program,
)
