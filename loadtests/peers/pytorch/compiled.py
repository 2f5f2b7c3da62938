"""Runs and times loops by torch's compiler on this machine's GPU, in a process of its own.

One step of a loop is compiled, which is the loop's cell. It is called again and again, compiled in the default mode or
in the mode that replays CUDA graphs by itself; or a CUDA graph of many compiled cells is captured and replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np

from loadtests.measuring.workers import answer_commands
from loadtests.peers.library_process import commands_of, imported
from loadtests.peers.pytorch.graph import GRAPH_STEPS, LoopGraph, captured
from loadtests.peers.pytorch.loops import brought, read_ns, torch_functions
from loadtests.workloads.loops import Floats, Loop

_DEFAULT, _REDUCE_OVERHEAD = "default", "reduce-overhead"
_WARMING_CALLS = 3


def serve(connection: Connection, loops: Mapping[str, Loop]) -> None:
    """Answers `compiled`, `reduced` and `graphed`, and the same with `_ns`, each with the arguments LOOP STEPS."""
    names = ("compiled", "compiled_ns", "reduced", "reduced_ns", "graphed", "graphed_ns")
    answer_commands(connection, commands_of(lambda: TorchCompiled(imported("torch"), loops), *names))


class _Cell(NamedTuple):
    """A compiled step, and its operands on the GPU. The first of them is the state."""

    step: Callable[..., Any]
    operands: tuple[Any, ...]


class TorchCompiled:
    """Loops on operands on the GPU, without gradients. Matrix products of float32 do not use TF32."""

    def __init__(self, torch: Any, loops: Mapping[str, Loop]) -> None:
        torch.set_grad_enabled(False)
        torch.backends.cuda.matmul.allow_tf32 = False
        self._torch = torch
        self._loops = loops
        self._cells: dict[tuple[str, str], _Cell] = {}
        self._graphs: dict[str, LoopGraph] = {}

    def compiled(self, name: str, steps: int) -> Floats:
        """Returns the state after so many calls of the compiled cell."""
        return brought(self._run(name, steps))

    def compiled_ns(self, name: str, steps: int) -> int:
        """Returns the time of so many calls of the compiled cell, until the host has what the loop reads."""
        return read_ns(self._loops[name], lambda: self._run(name, steps))

    def reduced(self, name: str, steps: int) -> Floats:
        """Returns what `compiled` returns, by the mode that reduces overhead."""
        return brought(self._run_reduced(name, steps))

    def reduced_ns(self, name: str, steps: int) -> int:
        """Returns what `compiled_ns` returns, by the mode that reduces overhead."""
        return read_ns(self._loops[name], lambda: self._run_reduced(name, steps))

    def graphed(self, name: str, steps: int) -> Floats:
        """Returns what `compiled` returns, but replays a graph of 100 cells. `steps` must be a multiple of 100."""
        return brought(self._replay(name, steps))

    def graphed_ns(self, name: str, steps: int) -> int:
        """Returns what `compiled_ns` returns, but replays a graph of 100 cells."""
        return read_ns(self._loops[name], lambda: self._replay(name, steps))

    def _run(self, name: str, steps: int) -> Any:
        cell = self._cell(name, _DEFAULT)
        state, *others = cell.operands
        for _ in range(steps):
            state = cell.step(state, *others)
        return state

    def _run_reduced(self, name: str, steps: int) -> Any:
        """A run of this mode overwrites the result of the run before, which therefore cannot be its operand."""
        cell = self._cell(name, _REDUCE_OVERHEAD)
        state, *others = cell.operands
        for _ in range(steps):
            state = cell.step(state, *others).clone()
        return state

    def _replay(self, name: str, steps: int) -> Any:
        cell = self._cell(name, _DEFAULT)
        if name not in self._graphs:
            self._graphs[name] = self._captured(cell)
        return self._graphs[name].run(cell.operands[0], steps)

    def _cell(self, name: str, mode: str) -> _Cell:
        if (name, mode) not in self._cells:
            self._cells[name, mode] = self._compile(self._loops[name], mode)
        return self._cells[name, mode]

    def _compile(self, loop: Loop, mode: str) -> _Cell:
        torch = self._torch
        kind, run, functions = type(loop.operands), loop.run, torch_functions(torch)

        def step(state: Any, *others: Any) -> Any:
            return run(kind(state, *others), (None,), functions)

        operands = tuple(torch.from_numpy(np.ascontiguousarray(each)).cuda() for each in loop.operands)
        return _Cell(torch.compile(step, mode=mode, dynamic=False), operands)

    def _captured(self, cell: _Cell) -> LoopGraph:
        first, *others = cell.operands
        state = first.clone()

        def warm() -> None:
            for _ in range(_WARMING_CALLS):
                cell.step(state, *others)

        def launch() -> None:
            result = state
            for _ in range(GRAPH_STEPS):
                result = cell.step(result, *others)
            state.copy_(result)

        return LoopGraph(state, captured(self._torch, warm, launch).replay)
