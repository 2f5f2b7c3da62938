"""Decides which launches are worth a captured graph, and which graphs are kept. Pure.

Launches that come once or twice have no graph, because capturing costs more than it saves. While a graph is captured
elsewhere, its launches are made one by one. What was used least recently is forgotten first, graph or not. So a device
that runs more plans than it can keep graphs of captures few of them, and launches the others kernel by kernel.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Generic, NamedTuple, TypeVar

G = TypeVar("G")

MOST_GRAPHS = 64
MOST_KEYS = 256  # with a graph or without; what a key holds, such as a plan, stays loaded as long as the key
MOST_NODES = 1 << 14  # 128 nodes take about 0.4 MiB of device memory and 1 MiB of host memory
USES_BEFORE = 2  # uses without a graph
_GRAPH_NODES = 128  # with so many, launching a graph costs little more than its kernels take
_MOST_NODES_OF_ONE = MOST_NODES // 8
_LEAST_NODES = 4  # fewer launches are as soon made one by one


def graph_sizes(nodes: int) -> tuple[int, ...]:
    """Returns how many iterations the graphs of a plan have, in descending order. `nodes` are those of an iteration."""
    if nodes == 0:
        return ()
    sizes = {_GRAPH_NODES // nodes, _GRAPH_NODES // 8 // nodes, 1}
    return tuple(sorted((size for size in sizes if _LEAST_NODES <= size * nodes <= _MOST_NODES_OF_ONE), reverse=True))


class PlanGraphs:
    """The graphs of a plan of which an iteration makes `nodes` launches. The device thread counts; any thread reads."""

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes
        self.sizes = graph_sizes(nodes)
        self.captured = 0
        self.evicted = 0

    @property
    def kept(self) -> int:
        """The number of graphs that are kept."""
        return self.captured - self.evicted

    @property
    def why_none(self) -> str:
        """Why the plan has no graph now, or an empty text if it has one."""
        if self.kept:
            return ""
        if not self.sizes:
            return f"an iteration makes {self.nodes} launches; a graph has {_LEAST_NODES} to {_MOST_NODES_OF_ONE}"
        if self.evicted:
            return "graphs of plans that were used more lately took its place"
        return f"its launches have not come {USES_BEFORE + 1} times for so many rows, or there was no memory"


def graph_rows(rows: int, most_rows: int) -> int:
    """Returns for how many rows a graph is captured that serves `rows`: at most half as many again, or `most_rows`.

    These are the powers of two, and three times such powers.
    """
    power = 1 << (rows - 1).bit_length()
    return min(power - power // 4 if rows <= power - power // 4 else power, most_rows)


class _Known(NamedTuple, Generic[G]):
    uses: int
    graph: G | None
    capture: Future[G | None] | None  # of a graph that is being captured
    nodes: int  # of the graph
    plan: PlanGraphs


class GraphCache(Generic[G]):
    """Graphs by key. A key stands for the launches that a graph makes.

    `drop` is called with each graph that is no longer kept.
    """

    def __init__(self, drop: Callable[[G], None]) -> None:
        self._drop = drop
        self._known: OrderedDict[Hashable, _Known[G]] = OrderedDict()
        self._nodes = 0
        self.captured = 0
        self.evicted = 0

    @property
    def kept(self) -> int:
        """The number of graphs that are kept. Any thread."""
        return self.captured - self.evicted

    def use(self, key: Hashable, nodes: int, capture: Callable[[], Future[G | None]], plan: PlanGraphs) -> G | None:
        """Returns the graph for a key, or None if the launches are to be made one by one.

        `capture` begins to capture a graph with so many nodes. Its result is None if there is no memory for it. A
        capture that fails counts as one without memory: if the device is at fault, the launches themselves will tell.
        The graph counts as one of `plan`.
        """
        known = self._known.get(key) or _Known(0, None, None, 0, plan)
        if known.graph is None:
            known = self._known[key] = self._with_more(known, nodes, capture)
        self._known.move_to_end(key)
        while len(self._known) > MOST_KEYS or self.kept > MOST_GRAPHS or self._nodes > MOST_NODES:
            self._forget_one()
        return known.graph

    def _with_more(self, known: _Known[G], nodes: int, capture: Callable[[], Future[G | None]]) -> _Known[G]:
        """Returns what is known after one more use of launches that have no graph."""
        if known.capture is not None:
            return self._captured(known, known.capture) if known.capture.done() else known
        if known.uses < USES_BEFORE:
            return known._replace(uses=known.uses + 1)
        self._nodes += nodes
        return known._replace(capture=capture(), nodes=nodes)

    def _captured(self, known: _Known[G], capture: Future[G | None]) -> _Known[G]:
        graph = None if capture.exception() else capture.result()
        if graph is None:
            self._nodes -= known.nodes
            return _Known(0, None, None, 0, known.plan)  # the next uses tell whether it can be captured by then
        self.captured += 1
        known.plan.captured += 1
        return known._replace(graph=graph, capture=None)

    def _forget_one(self) -> None:
        _, known = self._known.popitem(last=False)
        self._nodes -= known.nodes
        if known.capture is not None:
            known.capture.cancel()  # if it has begun, its graph is freed when it is done: it is never launched
        if known.graph is not None:
            self.evicted += 1
            known.plan.evicted += 1
            self._drop(known.graph)
