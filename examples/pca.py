"""Finds the directions in which data vary most: principal components by a singular value decomposition."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Components(NamedTuple):
    """Directions as rows (k, features), and the part of the variance along each (k,)."""

    directions: Any
    explained: Any


def cloud(count: int, seed: int = 0) -> Any:
    """Returns points in 8 dimensions that lie near a plane, a NumPy array (count, 8) of float64."""
    random = np.random.default_rng(seed)
    plane = random.standard_normal((2, 8))
    return random.standard_normal((count, 2)) * [5.0, 2.0] @ plane + 0.1 * random.standard_normal((count, 8))


def components(xp: Any, data: Any, count: int) -> Components:
    """Returns the first `count` components. The largest element of a direction is positive, which fixes its sign."""
    centred = data - data.mean(axis=0)
    _, singular, directions = xp.linalg.svd(centred, full_matrices=False)
    directions = directions[:count]
    largest = xp.take_along_axis(directions, xp.abs(directions).argmax(axis=1)[:, None], axis=1)
    variance = singular**2
    return Components(directions * xp.sign(largest), (variance / variance.sum())[:count])


if __name__ == "__main__":
    import fusewire as fw

    with fw.connect():
        found = components(fw, fw.asarray(cloud(5000)), 2)
        print("explained:", found.explained.numpy())
