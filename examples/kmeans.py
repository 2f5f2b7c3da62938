"""Groups points around centres: Lloyd's algorithm, in which each round is a few whole-array operations.

Source: S. Lloyd, Least squares quantization in PCM, IEEE Transactions on Information Theory 28 (1982).
"""

from __future__ import annotations

from typing import Any

import numpy as np

ROUNDS = 12


def blobs(groups: int, each: int, seed: int = 0) -> Any:
    """Returns points of a plane in so many round groups, a NumPy array (groups · each, 2) of float64."""
    random = np.random.default_rng(seed)
    centres = random.uniform(-10, 10, (groups, 1, 2))
    return (centres + random.standard_normal((groups, each, 2))).reshape(-1, 2)


def centres_of(xp: Any, points: Any, start: Any, rounds: int = ROUNDS) -> Any:
    """Returns the centres (k, 2) after some rounds from the centres `start`. A centre without points stays."""
    centres = start
    numbers = xp.arange(start.shape[0])
    for _ in range(rounds):
        distances = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
        belongs = (distances.argmin(axis=1)[:, None] == numbers[None, :]).astype(points.dtype)  # (points, k)
        counts = belongs.sum(axis=0)[:, None]
        centres = xp.where(counts > 0, belongs.T @ points / xp.maximum(counts, 1.0), centres)
    return centres


if __name__ == "__main__":
    import fusewire as fw

    with fw.connect():
        points = blobs(5, 2000)
        print(centres_of(fw, fw.asarray(points), fw.asarray(points[::2000])).numpy())
