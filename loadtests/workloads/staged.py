"""Loops whose steps have several products, or a product and a sum, that wait for one another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from loadtests.workloads.loops import Floats, Functions

GATED_OPS = 10  # in one step
NORMED_OPS = 5  # in one step
_GAIN = 2.0  # with it the state of gated units changes in every step, and rounding errors do not grow


class Gated(NamedTuple):
    """The operands of a loop of gated recurrent units, as arrays of the library that runs it."""

    state: Any  # (1, hidden) float32
    update: Any  # (hidden, hidden) float32, as the next two
    reset: Any
    proposal: Any


class Normed(NamedTuple):
    """The operands of a loop that multiplies a vector by a matrix and scales it to length 1."""

    state: Any  # (1, hidden) float32
    matrix: Any  # (hidden, hidden) float32


def draw_gated(hidden: int, seed: int) -> Gated:
    random = np.random.default_rng(seed)
    update, reset, proposal = (_orthogonal(random, hidden) for _ in range(3))
    return Gated(random.standard_normal((1, hidden), np.float32) / 2, update, reset, proposal * np.float32(_GAIN))


def draw_normed(hidden: int, seed: int) -> Normed:
    """Returns random operands with which the vector turns in every step, and never settles."""
    random = np.random.default_rng(seed)
    return Normed(random.standard_normal((1, hidden), np.float32), _orthogonal(random, hidden))


def run_gated(gated: Gated, steps: Iterable[object], functions: Functions) -> Any:
    """Runs gated recurrent units, once for each of `steps`; returns the last state."""
    h, update, reset, proposal = gated
    for _ in steps:
        z = functions.sigmoid(h @ update)
        r = functions.sigmoid(h @ reset)
        h = h + z * (functions.tanh((r * h) @ proposal) - h)
    return h


def run_normed(normed: Normed, steps: Iterable[object], functions: Functions) -> Any:
    """Multiplies the vector by the matrix and scales it to length 1, once for each of `steps`. Returns the vector."""
    x, matrix = normed
    for _ in steps:
        y = x @ matrix
        x = y / functions.sqrt((y * y).sum(axis=1, keepdims=True))
    return x


def _orthogonal(random: np.random.Generator, size: int) -> Floats:
    matrix: Floats = np.linalg.qr(random.standard_normal((size, size), np.float32))[0]
    return matrix
