"""Times several ways to do one thing, in turns and in alternating order, and summarises the measurements."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from time import perf_counter_ns
from typing import NamedTuple

from loadtests.measuring.figure import Spread


class Summary(NamedTuple):
    """The median of some measurements, and their spread."""

    median: float
    spread: Spread


def elapsed_ns(act: Callable[[], object]) -> int:
    """Returns the time that `act` takes."""
    began_ns = perf_counter_ns()
    act()
    return perf_counter_ns() - began_ns


def take_turns(turns: int, ways: Mapping[str, Callable[[], Sequence[float]]]) -> dict[str, list[float]]:
    """Calls every way once in each turn, in reverse order in every second turn. Returns all measurements by way."""
    measured: dict[str, list[list[float]]] = {name: [] for name in ways}
    order = list(ways)
    for _ in range(turns):
        for name in order:
            measured[name].append(list(ways[name]()))
        order.reverse()
    return {name: list(chain.from_iterable(parts)) for name, parts in measured.items()}


def summarise(measurements: Sequence[float]) -> Summary:
    return Summary(statistics.median(measurements), Spread(percentile(measurements, 10), percentile(measurements, 90)))


def percentile(measurements: Sequence[float], percent: float) -> float:
    """Returns the smallest measurement m such that at least `percent` % of all measurements are at most m."""
    ordered = sorted(measurements)
    rank = -(-len(ordered) * percent // 100)
    return ordered[max(int(rank) - 1, 0)]
