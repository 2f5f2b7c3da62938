"""What a device may still use lives until it has done all earlier work; so do evicted graphs."""

from __future__ import annotations

import weakref
from concurrent.futures import Future

from fusewire_kernels.devices.graph_cache import MOST_GRAPHS, USES_BEFORE, GraphCache, PlanGraphs
from fusewire_kernels.devices.null import NullDevice
from fusewire_kernels.devices.retirement import Retirement


class _Graph:
    """A graph as a cache keeps it."""


def test_what_is_retired_lives_until_the_device_has_done_all_earlier_work() -> None:
    device = NullDevice(completes_by_itself=False)
    retirement: Retirement[_Graph] = Retirement(device.fence)
    graph = _Graph()
    alive = weakref.ref(graph)
    retirement.retire(graph)
    del graph
    retirement.drop_unused()
    assert alive() is not None
    device.complete_next()
    retirement.drop_unused()
    assert alive() is None


def test_what_is_retired_later_is_dropped_later() -> None:
    device = NullDevice(completes_by_itself=False)
    retirement: Retirement[_Graph] = Retirement(device.fence)
    graphs = [_Graph(), _Graph()]
    alive = [weakref.ref(graph) for graph in graphs]
    while graphs:
        retirement.retire(graphs.pop(0))
    device.complete_next()
    retirement.drop_unused()
    assert [graph() is None for graph in alive] == [True, False]


def test_an_idle_device_keeps_nothing_that_is_retired() -> None:
    retirement: Retirement[_Graph] = Retirement(NullDevice().fence)
    graph = _Graph()
    alive = weakref.ref(graph)
    retirement.retire(graph)
    del graph
    assert alive() is None


def test_an_evicted_graph_lives_until_its_last_launch_is_done() -> None:
    device = NullDevice(completes_by_itself=False)
    retirement: Retirement[_Graph] = Retirement(device.fence)
    cache: GraphCache[_Graph] = GraphCache(retirement.retire)
    plan = PlanGraphs(8)
    captured: list[weakref.ref[_Graph]] = []

    def capture() -> Future[_Graph | None]:
        graph = _Graph()
        captured.append(weakref.ref(graph))
        future: Future[_Graph | None] = Future()
        future.set_result(graph)
        return future

    for key in range(MOST_GRAPHS + 1):
        for _ in range(USES_BEFORE + 2):
            cache.use(key, 8, capture, plan)
    assert (cache.kept, cache.evicted) == (MOST_GRAPHS, 1)
    assert captured[0]() is not None
    device.complete_next()
    retirement.drop_unused()
    assert captured[0]() is None
    assert all(graph() is not None for graph in captured[1:])
