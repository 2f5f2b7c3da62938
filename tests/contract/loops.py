"""Programs of clients: loops in ordinary array code, and a process that runs one of them.

`python -m tests.contract.loops TARGET NAME SEED` connects, runs the loop and prints its result's bytes in hexadecimal.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

import fusewire as fw

Loop = Callable[[fw.Session, int], fw.Array]

STEPS = 60
_ROWS, _FEATURES, _CLASSES = 96, 24, 7


def recurrence(session: fw.Session, seed: int, *, batch: int = 3) -> fw.Array:
    """A recurrent layer over a moving window, written inline."""
    random = np.random.default_rng(seed)
    xs = session.array(_normal(random, STEPS, batch, _FEATURES))
    u, v = session.array(_normal(random, _FEATURES, 32)), session.array(_normal(random, 32, 32))
    h = session.array(_normal(random, batch, 32))
    for step in range(STEPS):
        x = xs[step]
        z = x @ u + h @ v
        h = fw.tanh(z * 0.3) + h * 0.5
    return h


def layer(session: fw.Session) -> tuple[fw.Array, fw.Array, fw.Array]:
    """The state, the weights and the bias of a recurrent layer."""
    random = np.random.default_rng(2)
    h, w, b = [session.array(_normal(random, *shape)) for shape in ((4, 16), (16, 16), (16,))]
    return h, w, b


def recur(h: fw.Array, w: fw.Array, b: fw.Array, steps: int) -> fw.Array:
    """Runs a layer for so many steps, all on the line after the next."""
    for _ in range(steps):
        h = fw.tanh(h @ w + b)
    return h


LINE_OF_RECUR = f"{__file__}:{recur.__code__.co_firstlineno + 3}"


def training(session: fw.Session, seed: int) -> fw.Array:
    """Logistic regression by gradient descent, its rate changing at each step."""
    random = np.random.default_rng(seed)
    data, labels = session.array(_normal(random, _ROWS, _FEATURES)), random.integers(0, _CLASSES, _ROWS)
    wanted = session.array(np.eye(_CLASSES, dtype=np.float32)[labels])
    w = session.array(_normal(random, _FEATURES, _CLASSES))
    for step in range(STEPS):
        start = 16 * step % 80
        batch, truth = data[start : start + 16], wanted[start : start + 16]
        error = fw.softmax(batch @ w, axis=1) - truth
        w = w - (0.1 / (1 + seed + step)) * (batch.T @ error)
    return w


def integers(session: fw.Session, seed: int) -> fw.Array:
    """Whole numbers that wrap, with divisions by zero on the way."""
    random = np.random.default_rng(seed)
    x = session.array(random.integers(-1000, 1000, (40, 5)))
    y = session.array(random.integers(-3, 3, 5))
    for step in range(STEPS):
        x = (x * 3 + step) // y + x % 7
    return x


def halves(session: fw.Session, seed: int, *, batch: int = 9) -> fw.Array:
    """Normalised rows in half precision, shifted by what is greatest in the batch."""
    x = session.array(_normal(np.random.default_rng(seed), batch, 50).astype(np.float16))
    for _ in range(STEPS):
        x = fw.layer_norm(x, axis=-1) + x.max(axis=0) * 0.25
    return x


LOOPS: Mapping[str, Loop] = {loop.__name__: loop for loop in (recurrence, training, integers, halves)}


def run(target: str, loop: Loop, seed: int) -> bytes:
    """The bytes of a loop's result, in a session of its own."""
    with fw.connect(target) as session:
        return loop(session, seed).numpy().tobytes()


def _normal(random: np.random.Generator, *shape: int) -> npt.NDArray[Any]:
    return random.normal(size=shape).astype(np.float32)


if __name__ == "__main__":
    target, name, seed = sys.argv[1:]
    sys.stdout.write(run(target, LOOPS[name], int(seed)).hex())
