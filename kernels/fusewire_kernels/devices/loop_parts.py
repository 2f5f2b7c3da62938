"""Divides a loop into what is launched together: iterations of the same rows, and of these what graphs hold. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from operator import neg
from typing import NamedTuple


class Part(NamedTuple):
    """Iterations from `first` to `end`, in which the first `rows` rows run."""

    first: int
    end: int
    rows: int


def parts_of_loop(counts: Sequence[int]) -> Iterator[Part]:
    """Yields the parts of a loop whose rows have these counts, which do not increase: at first all rows run."""
    first, rows = 0, len(counts)
    while first < counts[0]:
        end = counts[rows - 1]
        yield Part(first, end, rows)
        if end < counts[0]:
            rows = bisect_left(counts, -end, hi=rows, key=neg)
        first = end


def graphs_of_part(iterations: int, sizes: Sequence[int]) -> Iterator[range]:
    """Yields the iterations of each graph, the largest graphs first, and then those behind them that no graph holds.

    `sizes` are how many iterations graphs hold, in descending order.
    """
    first = 0
    for size in sizes:
        while first + size <= iterations:
            yield range(first, first + size)
            first += size
    if first < iterations:
        yield range(first, iterations)
