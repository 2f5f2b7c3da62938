"""Loops that are new to a server: bodies of matrix products and pointwise ops, drawn at random."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from loadtests.workloads.loops import Floats, Function, Functions, Loop

POINTWISE = 6  # the number of pointwise ops to choose from; the last of them keeps values small

Cell = tuple[int, ...]  # a cell is a matrix product, then the pointwise ops that have these numbers


class Operands(NamedTuple):
    """The operands of a new loop, as arrays of the library that runs it."""

    x: Any  # (1, width) float32
    weights: Any  # (width, width) float32
    b: Any  # (width,) float32
    z: Any  # (width,) float32


def new_loop(cells: Sequence[Cell], width: int, seed: int) -> Loop:
    """Returns a loop with a body of these cells. Its operands are random, and the state does not grow without bound."""
    return Loop(_draw_operands(width, seed), partial(_run_cells, tuple(cells)))


def _draw_operands(width: int, seed: int) -> Operands:
    random_numbers = np.random.default_rng(seed)

    def draw(*shape: int) -> Floats:
        return random_numbers.uniform(-1, 1, shape).astype(np.float32)

    weights = draw(width, width) / np.float32(np.sqrt(width))
    return Operands(draw(1, width), weights, draw(width), draw(width))


def _run_cells(cells: tuple[Cell, ...], operands: Operands, steps: Iterable[object], functions: Functions) -> Any:
    x, weights, b, z = operands
    pointwise: tuple[Function, ...] = (
        lambda x: x + b,
        lambda x: x * z,
        lambda x: x - z,
        lambda x: -x,
        functions.sigmoid,
        functions.tanh,
    )
    for _ in steps:
        for cell in cells:
            x = x @ weights
            for number in cell:
                x = pointwise[number](x)
    return x
