"""Follows many moving objects by noisy positions: a batch of Kalman filters, one small matrix each.

Source: R. E. Kalman, A new approach to linear filtering and prediction problems, Journal of Basic Engineering 82
(1960).
"""

from __future__ import annotations

from typing import Any

import numpy as np

STEP_S = 0.1
PROCESS, MEASUREMENT = 0.05, 0.5  # variances


def tracks(objects: int, steps: int, seed: int = 0) -> tuple[Any, Any]:
    """Returns true and measured positions (steps, objects) of objects of constant speed, as NumPy arrays."""
    random = np.random.default_rng(seed)
    speed = random.uniform(-2, 2, objects)
    true = np.arange(steps)[:, None] * STEP_S * speed
    return true, true + MEASUREMENT**0.5 * random.standard_normal(true.shape)


def followed(xp: Any, measured: Any) -> Any:
    """Returns the filtered positions (steps, objects). The state of an object is its position and its speed."""
    steps, objects = measured.shape
    move = xp.asarray(np.array([[1.0, STEP_S], [0.0, 1.0]]))
    noise = xp.asarray(PROCESS * np.array([[STEP_S**3 / 3, STEP_S**2 / 2], [STEP_S**2 / 2, STEP_S]]))
    state = xp.zeros((objects, 2))
    spread = xp.broadcast_to(xp.eye(2) * 10.0, (objects, 2, 2))
    found = []
    for step in range(steps):
        state = state @ move.T
        spread = move @ spread @ move.T + noise
        gain = spread[:, :, 0] / (spread[:, 0, 0] + MEASUREMENT)[:, None]
        state = state + gain * (measured[step] - state[:, 0])[:, None]
        spread = spread - gain[:, :, None] * spread[:, None, 0, :]
        found.append(state[:, 0])
    return xp.stack(found)


if __name__ == "__main__":
    import fusewire as fw

    with fw.connect():
        true, measured = tracks(1000, 100)
        error = followed(fw, fw.asarray(measured)) - fw.asarray(true)
        print("measured ±", float(np.std(measured - true)), "filtered ±", float(error[50:].std()))
