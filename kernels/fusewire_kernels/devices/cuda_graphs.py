"""Captures iterations of a loop as CUDA graphs, which launch many kernels by one call. Device thread.

A graph reads its slot table from memory of its own, so that it runs over any blocks: the table is written, and then the
graph is launched. A plan has a graph for each number of rows that its loops often have. The graphs that were used least
recently are dropped, once the device has run them.
"""

from __future__ import annotations

import ctypes
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import cupy
from cupy.cuda import runtime

from fusewire_kernels.devices.cuda_driver import Call, CudaFence, Stream
from fusewire_protos.errors import OutOfMemory, ServerFault

MOST_GRAPHS = 64  # a graph of 128 nodes takes about 0.4 MiB of device memory
_NODES = 128


def iterations_of_graph(nodes: int) -> int:
    """Returns how many iterations a graph has, if an iteration has so many kernels."""
    return max(_NODES // nodes, 1)


class LoopGraph(NamedTuple):
    """A captured graph of some iterations. `table_address` is where it reads its slots. `owners` keep both alive."""

    iterations: int
    table_address: int
    executable: int
    owners: tuple[Any, ...]


class _Retired(NamedTuple):
    fence: CudaFence
    graph: LoopGraph


class LoopGraphs:
    """The captured graphs of one device. `allocate` returns device memory and may raise OutOfMemory."""

    def __init__(self, stream: Stream, allocate: Callable[[int], Any]) -> None:
        self._stream = stream
        self._allocate = allocate
        self._capturing = cupy.cuda.Stream(non_blocking=True)
        # What has run once, or has no graph because there was no memory, has None.
        self._graphs: OrderedDict[Hashable, LoopGraph | None] = OrderedDict()
        self._retired: deque[_Retired] = deque()
        self.captured = 0
        self.evicted = 0

    @property
    def kept(self) -> int:
        """The number of graphs that are kept. Any thread."""
        return self.captured - self.evicted

    def find(
        self, key: Hashable, iterations: int, table_bytes: int, calls_at: Callable[[int], Sequence[Call]]
    ) -> LoopGraph | None:
        """Returns the graph of a plan with some rows, or None if the plan is to be launched kernel by kernel.

        Everything runs once before it is captured. The graph has so many iterations, each with `table_bytes` of slots.
        `calls_at` returns the launches of an iteration for a slot table at an address.
        """
        if key not in self._graphs:
            self._keep(key, None)
            return None
        graph = self._graphs[key]
        if graph is None:
            graph = self._capture(iterations, table_bytes, calls_at)
        self._keep(key, graph)
        return graph

    def launch(self, graph: LoopGraph) -> None:
        """Launches a graph whose slot table is written."""
        self._stream.launch_graph(graph.executable)

    def _keep(self, key: Hashable, graph: LoopGraph | None) -> None:
        self._graphs[key] = graph
        self._graphs.move_to_end(key)
        if len(self._graphs) > MOST_GRAPHS:
            _, dropped = self._graphs.popitem(last=False)
            if dropped is not None:
                self.evicted += 1
                self._retired.append(_Retired(self._stream.fence(), dropped))
        while self._retired and self._retired[0].fence.is_reached():
            self._retired.popleft()

    def _capture(
        self, iterations: int, table_bytes: int, calls_at: Callable[[int], Sequence[Call]]
    ) -> LoopGraph | None:
        try:
            table = self._allocate(iterations * table_bytes)
            graph = self._captured(iterations, table.ptr, table_bytes, calls_at)
        except (OutOfMemory, runtime.CUDARuntimeError):
            return None
        self.captured += 1
        return LoopGraph(iterations, table.ptr, graph.graphExec, (table, graph))

    def _captured(
        self, iterations: int, table_address: int, table_bytes: int, calls_at: Callable[[int], Sequence[Call]]
    ) -> Any:
        """Returns a graph of CuPy. Nothing of it runs yet."""
        pointer = ctypes.c_void_p(self._capturing.ptr)
        self._capturing.begin_capture()
        try:
            for iteration in range(iterations):
                self._stream.capture(calls_at(table_address + iteration * table_bytes), pointer)
        except ServerFault:
            self._capturing.end_capture()
            raise
        return self._capturing.end_capture()
