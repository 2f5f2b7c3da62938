"""Taking turns and summing up: several ways to do a thing, each measured often, in alternating order."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from time import perf_counter_ns
from typing import NamedTuple

from loadtests.measuring.figure import Spread


class Summary(NamedTuple):
    """The middle of some measurements, and how far they spread."""

    median: float
    spread: Spread


def elapsed_ns(act: Callable[[], object]) -> int:
    """How long `act` takes."""
    began_ns = perf_counter_ns()
    act()
    return perf_counter_ns() - began_ns


def take_turns(turns: int, ways: Mapping[str, Callable[[], Sequence[float]]]) -> dict[str, list[float]]:
    """Calls every way in each turn, the first one last in every other turn; each returns its measurements."""
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
    """The smallest measurement that `percent` of all do not exceed."""
    ordered = sorted(measurements)
    rank = -(-len(ordered) * percent // 100)
    return ordered[max(int(rank) - 1, 0)]
