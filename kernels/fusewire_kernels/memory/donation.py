"""Decides which live results may be written over which inputs, as far as the program alone tells.

A result may be written over an input of its size if nothing reads the input after the result is first written. In the
launch that first writes the result, only the instance that writes it may read the input, and at the same points.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import chain, islice

from fusewire_kernels.fusion.lowering import Instance
from fusewire_kernels.graph.graph import INPUT, Graph
from fusewire_kernels.memory.lifetimes import Lifetime, have_equal_items, may_overwrite
from fusewire_kernels.plan.plan import Donation

MOST_FOR_A_RESULT = 4


def donations(graph: Graph, instances: list[Instance], lifetimes: dict[int, Lifetime]) -> tuple[Donation, ...]:
    """The legal pairs, at most `MOST_FOR_A_RESULT` for each result; inputs that are read late come first."""
    inputs = [value for value in lifetimes if graph.values[value].form is INPUT]
    inputs.sort(key=lambda value: lifetimes[value].last_use, reverse=True)
    rank_of = {value: rank for rank, value in enumerate(inputs)}
    last_uses = [-lifetimes[value].last_use for value in inputs]
    found: list[Donation] = []
    for position, result in enumerate(graph.outputs):
        if result not in lifetimes:
            continue
        launch, writer = lifetimes[result].writes[0]
        read_at_once = sorted({rank_of[value] for value, _ in instances[writer].read() if value in rank_of})
        read_before = range(bisect_right(last_uses, -launch), len(inputs))
        candidates = map(inputs.__getitem__, chain(read_at_once, read_before))
        legal = (value for value in candidates if _is_legal(graph, instances, lifetimes, value, result))
        found += [Donation(graph.values[value].number, position) for value in islice(legal, MOST_FOR_A_RESULT)]
    return tuple(found)


def _is_legal(
    graph: Graph, instances: list[Instance], lifetimes: dict[int, Lifetime], source: int, result: int
) -> bool:
    last_read, first_write = lifetimes[source].reads[-1].launch, lifetimes[result].first_write
    if last_read == first_write:
        return may_overwrite(graph, instances, lifetimes, source, result)
    return last_read < first_write and have_equal_items(graph, source, result)
