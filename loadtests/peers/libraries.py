"""What users would run instead on a machine of their own: NumPy on the CPU, torch on the GPU, each op by op."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from loadtests.measuring.workers import Worker
from loadtests.peers import numpy_loops, torch_loops
from loadtests.workloads.loops import Loop


class Library(NamedTuple):
    """`serve(connection, loops)` is what its process runs. One with graphs answers `replayed` and `replay_ns` too."""

    name: str
    serve: Callable[..., None]
    has_graphs: bool = False

    def running(self, loops: Mapping[str, Loop]) -> Worker:
        """A process that runs these loops when it is asked to."""
        return Worker(self.serve, loops)


LIBRARIES: Mapping[str, Library] = {
    "cpu": Library("NumPy", numpy_loops.serve),
    "cuda": Library("torch eager", torch_loops.serve, has_graphs=True),
}
