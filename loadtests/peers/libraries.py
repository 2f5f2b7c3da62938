"""The libraries that users would run instead of Fusewire: NumPy on their CPU or torch on their GPU, op by op."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from loadtests.measuring.workers import Worker
from loadtests.peers import numpy_loops
from loadtests.peers.pytorch import loops as torch_loops
from loadtests.workloads.loops import Loop


class Library(NamedTuple):
    """`serve(connection, loops)` runs in its own process; if `has_graphs`, it also replays graphs on command."""

    name: str
    serve: Callable[..., None]
    has_graphs: bool = False

    def running(self, loops: Mapping[str, Loop]) -> Worker:
        """Starts a process that runs these loops on command."""
        return Worker(self.serve, loops)


LIBRARIES: Mapping[str, Library] = {
    "cpu": Library("NumPy", numpy_loops.serve),
    "cuda": Library("torch eager", torch_loops.serve, has_graphs=True),
}
