"""Heat that spreads on a grid: array code of slices, concatenations and choices, which NumPy and Fusewire run alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from loadtests.workloads.loops import Floats

STENCIL_OPS = 21  # in one step
_WIDTH = 32


def draw_grid(seed: int) -> Floats:
    """Returns the heat of each place, (32, 32) float32."""
    return np.random.default_rng(seed).uniform(0, 1.2, (_WIDTH, _WIDTH)).astype(np.float32)


def run_stencil(grid: Any, steps: int, xp: Any) -> Any:
    """Returns the grid after so many steps. `xp` is `numpy` or `fusewire`."""
    for _ in range(steps):
        inner = grid[1:-1, 1:-1]
        around = grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:]
        heated = xp.maximum(inner + 0.1 * (around - 4.0 * inner), 0.0)
        limited = xp.where(heated > 1.0, 1.0, heated)
        rows = xp.concat([grid[1:-1, :1], limited, grid[1:-1, -1:]], axis=1)
        grid = xp.concat([grid[:1], rows, grid[-1:]], axis=0)
    return grid
