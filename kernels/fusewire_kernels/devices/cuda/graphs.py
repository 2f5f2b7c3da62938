"""Captures launches as CUDA graphs, which make many launches by one call.

A graph reads its slot table from memory of its own, so that it runs over any blocks: the table is written, and then the
graph is launched. A graph is made for a plan, a number of rows and a number of iterations. It serves fewer rows too:
the slots of the others are zero, and kernels skip such rows. Once a graph is no longer kept, the device may still be
running it, so it lives until a fence behind its last launch is reached.

A thread of its own captures, on a stream of its own, so that the device thread goes on meanwhile. Everything else here
belongs to the device thread.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple

import cupy
from cupy.cuda import runtime

from fusewire_kernels.devices.cuda.driver import Call, Stream
from fusewire_kernels.devices.graph_cache import GraphCache, PlanGraphs
from fusewire_kernels.devices.retirement import Retirement
from fusewire_protos.errors import OutOfMemory, ServerFault

CallsAt = Callable[[int], Sequence[Call]]


class LaunchGraph(NamedTuple):
    """A captured graph. `table_address` is where it reads its slots. `owners` keep both alive."""

    table_address: int
    executable: int
    owners: tuple[Any, ...]


class LaunchGraphs:
    """The captured graphs of one device. If the device can do so, their kernels `start_early`.

    `allocate` returns device memory and may raise OutOfMemory. It is called in any thread.
    """

    def __init__(self, stream: Stream, allocate: Callable[[int], Any], *, start_early: bool) -> None:
        self._stream = stream
        self._start_early = start_early
        self._allocate = allocate
        self._capturing = cupy.cuda.Stream(non_blocking=True)
        self._thread = ThreadPoolExecutor(1, "fusewire-capture", initializer=runtime.setDevice, initargs=(0,))
        retirement: Retirement[LaunchGraph] = Retirement(stream.fence)
        self.cache: GraphCache[LaunchGraph] = GraphCache(retirement.retire)

    def find(
        self,
        key: Hashable,
        iterations: int,
        table_bytes: int,
        prepare: Callable[[], CallsAt],
        plan: PlanGraphs,
    ) -> LaunchGraph | None:
        """Returns the graph of so many iterations, or None if they are to be launched kernel by kernel.

        `key` names the plan and its rows. An iteration has `table_bytes` of slots. `prepare` returns a function that
        returns the launches of an iteration for a slot table at an address; the capturing thread calls both. The graph
        counts as one of `plan`.
        """

        def capture() -> Future[LaunchGraph | None]:
            return self._thread.submit(self._capture, iterations, table_bytes, prepare)

        return self.cache.use((key, iterations), iterations * plan.nodes, capture, plan)

    def launch(self, graph: LaunchGraph) -> None:
        """Launches a graph whose slot table is written."""
        self._stream.launch_graph(graph.executable)

    def close(self) -> None:
        """Waits for the capture that is under way, and begins no other."""
        self._thread.shutdown(cancel_futures=True)

    # ---- the capturing thread ----

    def _capture(self, iterations: int, table_bytes: int, prepare: Callable[[], CallsAt]) -> LaunchGraph | None:
        try:
            table = self._allocate(iterations * table_bytes)
            graph = self._captured(iterations, table.ptr, table_bytes, prepare())
            graph.upload(self._capturing)
            self._capturing.synchronize()
        except (OutOfMemory, runtime.CUDARuntimeError):
            return None
        return LaunchGraph(table.ptr, graph.graphExec, (table, graph))

    def _captured(self, iterations: int, table_address: int, table_bytes: int, calls_at: CallsAt) -> Any:
        """Returns a graph of CuPy. Nothing of it runs yet."""
        pointer = ctypes.c_void_p(self._capturing.ptr)
        self._capturing.begin_capture()
        try:
            for iteration in range(iterations):
                calls = calls_at(table_address + iteration * table_bytes)
                self._stream.capture(calls, pointer, start_early=self._start_early)
        except ServerFault:
            with suppress(runtime.CUDARuntimeError):  # the fault may have ended the capture
                self._capturing.end_capture()
            raise
        return self._capturing.end_capture()
