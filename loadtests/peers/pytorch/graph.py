"""Captures what torch launches on this machine's GPU in CUDA graphs, and replays them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

GRAPH_STEPS = 100


class LoopGraph(NamedTuple):
    """A captured graph of 100 steps of a loop. Replaying it replaces the contents of `state`."""

    state: Any
    replay: Callable[[], None]

    def run(self, first: Any, steps: int) -> Any:
        """Returns the state after `steps` steps from the state `first`. `steps` must be a multiple of 100."""
        self.state.copy_(first)
        for _ in range(steps // GRAPH_STEPS):
            self.replay()
        return self.state


def captured(torch: Any, warm: Callable[[], object], launch: Callable[[], object]) -> Any:
    """Returns a CUDA graph of what `launch` launches.

    Calls `warm` before, which runs the same ops, because what torch prepares at their first run cannot be captured.
    """
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        warm()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launch()
    return graph
