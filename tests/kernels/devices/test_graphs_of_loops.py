"""On a device that computes nothing: loops are captured in another thread, and their graphs are launched and evicted.

Only the capturing itself is left out, so that the rest runs without a GPU.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fusewire_kernels.devices import graph_cache
from fusewire_kernels.devices.base import Fence
from fusewire_kernels.devices.graph_cache import USES_BEFORE, GraphCache, PlanGraphs, graph_rows
from fusewire_kernels.devices.loop_parts import graphs_of_part, parts_of_loop
from fusewire_kernels.devices.null import NullDevice, NullPlan
from fusewire_kernels.devices.retirement import Retirement
from fusewire_kernels.plan.plan import ArenaColumn, Cost, Plan
from fusewire_protos.programs.records import Records
from tests.effort import of_a_hundred

NODES = 8
MOST_ROWS = 6
_WITHIN_S = 30.0

Table = npt.NDArray[np.int64]


class Graph:
    """The launches of so many iterations of a plan, for at most so many rows."""

    def __init__(self, plan: Plan, iterations: int, most_rows: int) -> None:
        self.holds = (plan, iterations, most_rows)
        self.last_launch: list[Fence] = []  # a fence behind it


class CapturingDevice(NullDevice):
    """Launches loops as a GPU does. `slots` has what each launch of an iteration was told, in order.

    `freed` counts the graphs that were freed after they had been launched, and `freed_early` those of them whose last
    launch was not done.
    """

    def __init__(self) -> None:
        super().__init__(completes_by_itself=False)
        self.slots: list[tuple[Plan, bytes]] = []
        self.graph_launches = 0
        self.captures = 0
        self.freed = 0
        self.freed_early = 0
        self.retirement: Retirement[Graph] = Retirement(self.fence)
        self.cache: GraphCache[Graph] = GraphCache(self.retirement.retire)
        self._graphs: weakref.WeakKeyDictionary[NullPlan, PlanGraphs] = weakref.WeakKeyDictionary()
        self._thread = ThreadPoolExecutor(1, "capture")

    def launch_iteration(self, loaded: NullPlan, slots: Table) -> None:
        super().launch_iteration(loaded, slots)
        self.slots.append((loaded.plan, slots.tobytes()))

    def launch(self, loaded: NullPlan, table: Table, counts: Sequence[int]) -> None:
        for first, end, rows in parts_of_loop(counts):
            self._launch_iterations(loaded, table[first:end, :rows])

    def wait_until_captured(self) -> None:
        self._thread.submit(lambda: None).result(_WITHIN_S)

    def complete(self) -> None:
        """Completes all work, and frees what waits for that."""
        super().close()
        self.retirement.drop_unused()

    def close(self) -> None:
        self._thread.shutdown(cancel_futures=True)
        super().close()

    def graphs(self, loaded: NullPlan) -> PlanGraphs:
        return self._graphs.setdefault(loaded, PlanGraphs(NODES))

    def _launch_iterations(self, loaded: NullPlan, table: Table) -> None:
        sizes = self.graphs(loaded).sizes
        for span in graphs_of_part(len(table), sizes):
            of_span = table[span.start : span.stop]
            if len(span) not in sizes or not self._launch_graph(loaded, of_span):
                for slots in of_span:
                    self.launch_iteration(loaded, slots)

    def _launch_graph(self, loaded: NullPlan, table: Table) -> bool:
        iterations, rows, _ = table.shape
        holds = (loaded.plan, iterations, graph_rows(rows, MOST_ROWS))

        def capture() -> Future[Graph | None]:
            return self._thread.submit(self._capture, *holds)

        graph = self.cache.use(holds, iterations * NODES, capture, self.graphs(loaded))
        if graph is None:
            return False
        assert graph.holds == holds
        for slots in table:
            self.launch_iteration(loaded, slots)
        self.graph_launches += 1
        graph.last_launch[:] = [self.fence()]
        return True

    def _capture(self, plan: Plan, iterations: int, most_rows: int) -> Graph:
        self.captures += 1
        graph = Graph(plan, iterations, most_rows)
        weakref.finalize(graph, self._free, graph.last_launch)
        return graph

    def _free(self, last_launch: list[Fence]) -> None:
        self.freed += bool(last_launch)
        self.freed_early += not all(fence.is_reached() for fence in last_launch)


@pytest.fixture
def device() -> Iterator[CapturingDevice]:
    device = CapturingDevice()
    yield device
    device.close()


def load(device: NullDevice, name: str) -> NullPlan:
    return device.load(Plan((), (), (ArenaColumn(),), 0, (), Cost(0, 0), Records(why_launched=name)), ())


def table_of(counts: Sequence[int], first: int = 0) -> Table:
    """Slots that tell which iteration and row they are for, the first of which is not zero."""
    numbers = 1 + first + np.arange(counts[0] * len(counts), dtype=np.int64)
    return numbers.reshape(counts[0], len(counts), 1)


def launched(loaded: NullPlan, table: Table, counts: Sequence[int]) -> list[tuple[Plan, bytes]]:
    """What each launch of a loop is told if none goes by a graph."""
    going_on = [sum(count > iteration for count in counts) for iteration in range(counts[0])]
    return [(loaded.plan, slots[:rows].tobytes()) for slots, rows in zip(table, going_on, strict=True)]


def run(device: CapturingDevice, loaded: NullPlan, times: int = USES_BEFORE + 2) -> None:
    """Launches a loop so often, each time when what was captured before is there."""
    for _ in range(times):
        device.launch(loaded, table_of((16,)), (16,))
        device.wait_until_captured()


def test_a_loop_goes_by_its_graph_once_that_is_captured(device: CapturingDevice) -> None:
    loaded = load(device, "a")
    run(device, loaded, USES_BEFORE + 1)
    assert (device.graph_launches, device.cache.captured) == (0, 0)
    run(device, loaded, 1)
    assert (device.graph_launches, device.cache.captured) == (1, 1)


def test_only_the_graphs_that_serve_a_loop_are_captured(device: CapturingDevice) -> None:
    plans = [load(device, name) for name in "abc"]
    for loaded in plans:
        run(device, loaded)
    assert device.captures == len(plans)


def test_an_evicted_graph_lives_until_its_last_launch_is_done(
    device: CapturingDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph_cache, "MOST_GRAPHS", 1)
    run(device, load(device, "a"))
    run(device, load(device, "b"))
    assert (device.cache.evicted, device.freed) == (1, 0)
    device.complete()
    assert (device.freed, device.freed_early) == (1, 0)


class Slice(NamedTuple):
    """Iterations of one of three plans, for rows of these counts, and what comes behind them."""

    plan: int
    counts: tuple[int, ...]
    is_captured: bool
    is_done: bool


# Few counts and plans, so that the same launches come again.
counts = st.sampled_from([(40,), (17, 17), (33, 20, 3), (20, 20, 16), (2, 1, 1, 1, 1)])
slices = st.builds(
    Slice, st.integers(0, 2), counts, st.sampled_from([True, True, False]), st.sampled_from([False, False, False, True])
)


@settings(of_a_hundred(30), suppress_health_check=[*HealthCheck])
@given(chosen=st.lists(slices, min_size=20, max_size=60), most_graphs=st.integers(1, 6))
def test_slices_in_any_order_make_the_launches_that_they_make_without_graphs(
    chosen: Sequence[Slice], most_graphs: int
) -> None:
    device = CapturingDevice()
    plans = [load(device, name) for name in "abc"]
    expected = []
    with pytest.MonkeyPatch.context() as few:
        few.setattr(graph_cache, "MOST_GRAPHS", most_graphs)
        for number, (plan, counts, is_captured, is_done) in enumerate(chosen):
            table = table_of(counts, 1000 * number)
            expected += launched(plans[plan], table, counts)
            device.launch(plans[plan], table, counts)
            if is_captured:
                device.wait_until_captured()
            if is_done:
                device.complete()
    assert device.slots == expected
    assert device.cache.kept <= most_graphs
    assert device.freed_early == 0
    device.close()
