"""Chooses the kinds of frames that cost the engine thread most: for each byte, and in one step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import NamedTuple

from tests.server.costs.kinds import KINDS, Kind
from tests.server.costs.measuring import Cost, cost_of

_PARTS = (0.5, 0.8)  # of a kind's size: both frames that are short, and frames of long steps


class Round(NamedTuple):
    """A kind by its name, and a size of it. Goes from one process to another."""

    name: str
    size: int


def most_costly(count: int) -> list[Round]:
    """Returns `count` kinds of the most time for each byte, and as many others of the longest steps at their most."""
    found = [(kind, kind.size(part), cost_of(kind, kind.size(part))) for kind in KINDS for part in _PARTS]
    by_byte = _first(count, found, lambda cost: cost.ns_a_byte, ())
    by_step = _first(count, found, lambda cost: cost.longest.time_ns, [kind.name for kind, _ in by_byte])
    return [Round(kind.name, size) for kind, size in by_byte] + [Round(kind.name, kind.most) for kind, _ in by_step]


def _first(
    count: int,
    found: Sequence[tuple[Kind, int, Cost]],
    figure: Callable[[Cost], float],
    taken: Sequence[str],
) -> list[tuple[Kind, int]]:
    """The kinds with the greatest figures, each with the size at which it has it."""
    best = {}
    for kind, size, cost in sorted(found, key=lambda each: figure(each[2])):
        if kind.name not in taken:
            best[kind] = figure(cost), size
    ordered = sorted(best.items(), key=itemgetter(1), reverse=True)
    return [(kind, size) for kind, (_, size) in ordered[:count]]
