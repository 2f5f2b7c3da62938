"""Runs and times loops in torch on this machine's GPU, op by op and as a replayed graph, in a process of its own.

torch is imported in that process only, so that machines without torch can list the figures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from loadtests.measuring.timing import elapsed_ns
from loadtests.measuring.workers import answer_commands
from loadtests.peers.library_process import commands_of, imported
from loadtests.peers.pytorch.graph import GRAPH_STEPS, LoopGraph, captured
from loadtests.workloads.loops import Floats, Functions, Loop

_WARMING_STEPS = 100


def serve(connection: Connection, loops: Mapping[str, Loop]) -> None:
    """Answers the commands `result`, `run_ns`, `replayed` and `replay_ns`, each with the arguments LOOP STEPS."""
    with ExitStack() as opened:

        def peer() -> TorchLoops:
            torch = imported("torch")
            opened.enter_context(torch.inference_mode())
            return TorchLoops(torch, loops)

        answer_commands(connection, commands_of(peer, "result", "run_ns", "replayed", "replay_ns"))


class TorchLoops:
    """Loops on operands on the GPU, in torch's inference mode. Matrix products of float32 do not use TF32."""

    def __init__(self, torch: Any, loops: Mapping[str, Loop]) -> None:
        self._torch = torch
        torch.backends.cuda.matmul.allow_tf32 = False
        self._functions = torch_functions(torch)
        self._loops = {name: loop._replace(operands=self._on_gpu(loop.operands)) for name, loop in loops.items()}
        self._graphs: dict[str, LoopGraph] = {}

    def result(self, name: str, steps: int) -> Floats:
        """Returns the state after `steps` steps."""
        return brought(self._run(name, steps))

    def run_ns(self, name: str, steps: int) -> int:
        """Returns the time of `steps` steps, until the host has the part of the state that the loop reads."""
        return read_ns(self._loops[name], lambda: self._run(name, steps))

    def replayed(self, name: str, steps: int) -> Floats:
        """Returns what `result` returns, but replays a graph of 100 steps. `steps` must be a multiple of 100."""
        return brought(self._replay(name, steps))

    def replay_ns(self, name: str, steps: int) -> int:
        """Returns what `run_ns` returns, but replays a graph of 100 steps. `steps` must be a multiple of 100."""
        return read_ns(self._loops[name], lambda: self._replay(name, steps))

    def _on_gpu(self, operands: Any) -> Any:
        arrays = (np.ascontiguousarray(operand) for operand in operands)
        return type(operands)(*(self._torch.from_numpy(array).cuda() for array in arrays))

    def _run(self, name: str, steps: int) -> Any:
        loop = self._loops[name]
        return loop.run(loop.operands, range(steps), self._functions)

    def _replay(self, name: str, steps: int) -> Any:
        if name not in self._graphs:
            self._graphs[name] = self._captured(self._loops[name])
        return self._graphs[name].run(self._loops[name].operands[0], steps)

    def _captured(self, loop: Loop) -> LoopGraph:
        state = loop.operands[0].clone()
        operands = type(loop.operands)(state, *loop.operands[1:])

        def run(steps: int) -> Any:
            return loop.run(operands, range(steps), self._functions)

        graph = captured(self._torch, lambda: run(_WARMING_STEPS), lambda: state.copy_(run(GRAPH_STEPS)))
        return LoopGraph(state, graph.replay)


def torch_functions(torch: Any) -> Functions:
    return Functions(
        torch.sigmoid, torch.tanh, torch.relu, torch.sqrt, torch.concat, lambda x, w: torch.conv2d(x, w, padding=1)
    )


def read_ns(loop: Loop, run: Callable[[], Any]) -> int:
    """Returns the time of `run`, which returns a state, until the host has the part of it that the loop reads."""
    return elapsed_ns(lambda: brought(loop.read(run())))


def brought(value: Any) -> Floats:
    array: Floats = value.cpu().numpy()
    return array
