"""Plays Conway's Game of Life on a torus: eight shifted copies of the board are added in each generation."""

from __future__ import annotations

from typing import Any

import numpy as np

GLIDER = ((0, 1), (1, 2), (2, 0), (2, 1), (2, 2))


def board(size: int) -> Any:
    """Returns a board (size, size) with one glider, a NumPy array of int64."""
    cells = np.zeros((size, size), np.int64)
    cells[tuple(zip(*GLIDER, strict=True))] = 1
    return cells


def played(xp: Any, cells: Any, generations: int) -> Any:
    """Returns the board after some generations."""
    for _ in range(generations):
        rows = xp.roll(cells, 1, axis=0) + cells + xp.roll(cells, -1, axis=0)
        around = xp.roll(rows, 1, axis=1) + rows + xp.roll(rows, -1, axis=1) - cells
        cells = ((around == 3) | ((around == 2) & (cells == 1))).astype(cells.dtype)
    return cells


if __name__ == "__main__":
    import fusewire as fw

    with fw.connect():
        for line in played(fw, fw.asarray(board(20)), 40).numpy():
            print("".join(" #"[cell] for cell in line))
