"""Fits a line through noisy points: by the normal equations, and by gradient descent in one recorded loop."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

SLOPE, OFFSET, NOISE = 1.7, -0.4, 0.1
RATE, STEPS = 0.3, 400


class Line(NamedTuple):
    slope: Any
    offset: Any


def points(count: int, seed: int = 0) -> tuple[Any, Any]:
    """Returns x and y of noisy points near a line, as NumPy arrays of float64."""
    random = np.random.default_rng(seed)
    x = random.uniform(-1, 1, count)
    return x, SLOPE * x + OFFSET + NOISE * random.standard_normal(count)


def solved(xp: Any, x: Any, y: Any) -> Line:
    """Returns the line of least squares by the normal equations."""
    columns = xp.stack([x, xp.ones_like(x)], axis=1)
    slope, offset = xp.linalg.solve(columns.T @ columns, columns.T @ y)
    return Line(slope, offset)


def descended(xp: Any, x: Any, y: Any, steps: int = STEPS) -> Line:
    """Returns the line after steps of gradient descent from a flat line."""
    slope = offset = xp.zeros(())
    for _ in range(steps):
        error = slope * x + offset - y
        slope, offset = slope - RATE * (error * x).mean(), offset - RATE * error.mean()
    return Line(slope, offset)


if __name__ == "__main__":
    import fusewire as fw

    with fw.connect():
        x, y = map(fw.asarray, points(10_000))
        print("solved:   ", *map(float, solved(fw, x, y)))
        print("descended:", *map(float, descended(fw, x, y)))
