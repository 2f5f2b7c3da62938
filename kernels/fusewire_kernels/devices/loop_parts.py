"""Divides a loop into what is launched together: iterations of the same rows, and of these what graphs hold. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple


class Part(NamedTuple):
    """Iterations from `first` to `end`, in which the first `rows` rows run."""

    first: int
    end: int
    rows: int


def parts_of_loop(counts: Sequence[int]) -> Iterator[Part]:
    """Yields the parts of a loop whose rows have these counts, which do not increase: at first all rows run."""
    first = 0
    while first < counts[0]:
        rows = sum(count > first for count in counts)
        yield Part(first, counts[rows - 1], rows)
        first = counts[rows - 1]


def launch_by_graphs(iterations: int, sizes: Sequence[int], launch: Callable[[int, int], bool]) -> int:
    """Launches iterations by graphs of so many, the largest first. Returns how many; no graph serves those behind them.

    `launch` gets the first iteration and the size of a graph. It returns False if there is no such graph now.
    """
    first = 0
    for size in sizes:
        while first + size <= iterations and launch(first, size):
            first += size
    return first
