"""Moves bodies under their gravity by leapfrog steps, every pair at once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

SOFTENING = 0.05  # keeps the force of a close pair finite
STEP = 0.01


class Bodies(NamedTuple):
    """Positions and velocities (n, 3), and masses (n,)."""

    positions: Any
    velocities: Any
    masses: Any


def cluster(count: int, seed: int = 0) -> Bodies:
    """Returns bodies that begin at rest relative to each other, as NumPy arrays of float64."""
    random = np.random.default_rng(seed)
    return Bodies(random.standard_normal((count, 3)), np.zeros((count, 3)), np.full(count, 1.0 / count))


def moved(xp: Any, bodies: Bodies, steps: int) -> Bodies:
    """Returns the bodies after some steps."""
    positions, velocities, masses = bodies
    pull = _pull(xp, positions, masses)
    for _ in range(steps):
        velocities = velocities + 0.5 * STEP * pull
        positions = positions + STEP * velocities
        pull = _pull(xp, positions, masses)
        velocities = velocities + 0.5 * STEP * pull
    return Bodies(positions, velocities, masses)


def _pull(xp: Any, positions: Any, masses: Any) -> Any:
    between = positions[None, :, :] - positions[:, None, :]
    squares = (between * between).sum(axis=2) + SOFTENING**2
    return (between * (masses[None, :] / (squares * xp.sqrt(squares)))[:, :, None]).sum(axis=1)


def energy(xp: Any, bodies: Bodies) -> Any:
    """Returns the energy of all bodies, which a step hardly changes."""
    positions, velocities, masses = bodies
    between = positions[None, :, :] - positions[:, None, :]
    distances = xp.sqrt((between * between).sum(axis=2) + SOFTENING**2)
    own = (masses / SOFTENING * masses).sum()  # what the sum below counts of each body with itself
    return 0.5 * (masses[:, None] * velocities**2).sum() - 0.5 * (
        (masses[:, None] * masses[None, :] / distances).sum() - own
    )


if __name__ == "__main__":
    import fusewire as fw

    with fw.connect():
        begin = Bodies(*map(fw.asarray, cluster(512)))
        end = moved(fw, begin, 100)
        print("energy:", float(energy(fw, begin)), "->", float(energy(fw, end)))
