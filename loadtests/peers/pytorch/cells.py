"""Measures the time of network cells on this machine's GPU in torch, as replayed CUDA graphs, in a process of its own.

Each cell is written in the fastest way that torch offers: layers by a product whose epilogue adds the bias and applies
the ReLU (`torch._addmm_activation`), convolutions by those of cuDNN that do so too, the split form by `torch.compile`
of the form that is combined by hand, and the layer norm as a mere copy of the same bytes, which nothing can be faster
than. A matrix product is that of cuBLAS.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np

from loadtests.measuring.workers import answer_commands
from loadtests.peers.library_process import commands_of, imported
from loadtests.peers.pytorch.graph import captured
from loadtests.peers.pytorch.loops import torch_functions
from loadtests.workloads.cells import Blocks, Cell, Conv2d, Mlp, Norm, Product, Split
from loadtests.workloads.loops import Floats

_REPLAYS = 7
_WARMING_STEPS = 3


def serve(connection: Connection) -> None:
    """Answers `result CELL` and `device_us CELL STEPS`."""
    answer_commands(connection, commands_of(lambda: TorchCells(imported("torch")), "result", "device_us"))


class _Running(NamedTuple):
    """A cell on the GPU: `step` takes the state to the next."""

    cell: Cell
    state: Any
    step: Callable[[Any], Any]


class TorchCells:
    """Cells on the GPU, without gradients. Products of float32 do not use TF32. It holds one cell at a time."""

    def __init__(self, torch: Any) -> None:
        torch.set_grad_enabled(False)
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = True  # chooses the fastest of its algorithms
        self._torch = torch
        self._functions = torch_functions(torch)
        self._running: _Running | None = None

    def result(self, cell: Cell) -> Floats:
        """Returns the part of the state that the cell's loop reads, after one step."""
        running = self._run(cell)
        read: Floats = cell.loop().read(running.step(running.state)).cpu().numpy()
        return read

    def device_us(self, cell: Cell, steps: int) -> float:
        """Returns the time of a step on the GPU in µs: the median of some replays of a graph of so many steps."""
        torch = self._torch
        graph = self._captured(self._run(cell), steps)
        graph.replay()
        times_us: list[float] = []
        for _ in range(_REPLAYS):
            began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            began.record()
            graph.replay()
            ended.record()
            ended.synchronize()
            times_us.append(began.elapsed_time(ended) * 1e3 / steps)
        return statistics.median(times_us)

    def _run(self, cell: Cell) -> _Running:
        if self._running is None or self._running.cell != cell:
            self._running = None  # frees the memory of the last cell first
            loop = cell.loop()
            state, *others = (self._on_gpu(each) for each in loop.operands)
            self._running = _Running(cell, state, self._step(cell, state, others))
        return self._running

    def _on_gpu(self, operand: Any) -> Any:
        if isinstance(operand, tuple):
            return tuple(self._on_gpu(each) for each in operand)
        return self._torch.from_numpy(np.ascontiguousarray(operand)).cuda()

    def _step(self, cell: Cell, state: Any, others: list[Any]) -> Callable[[Any], Any]:
        match cell:
            case Mlp():
                return self._fused_layers(others)
            case Conv2d():
                return self._fused_convolution(*others)
            case Split():
                compiled = self._torch.compile(self._combined, dynamic=False)
                return lambda state: compiled(state, *others)
            case Blocks() | Product():
                run = cell.loop().run
                return lambda state: run((state, *others), (None,), self._functions)
            case Norm():
                return self._copier(state)

    def _fused_layers(self, layers: list[Any]) -> Callable[[Any], Any]:
        fused = self._torch._addmm_activation  # its activation is a ReLU, unless it is told otherwise

        def step(x: Any) -> Any:
            for weights, bias in zip(layers[::2], layers[1::2], strict=True):
                x = fused(bias, x, weights)
            return x

        return step

    def _fused_convolution(self, kernels: Any, bias: Any) -> Callable[[Any], Any]:
        fused, of_one_axis = self._torch.cudnn_convolution_relu, bias.reshape(-1)
        return lambda x: fused(x, kernels, of_one_axis, (1, 1), (1, 1), (1, 1), 1)

    def _combined(self, x: Any, weights: Any, bias: Any) -> Any:
        """The split form as its author would combine it by hand: no parts."""
        torch = self._torch
        centred = x - x.mean(1, keepdim=True)
        variance = (centred * centred).mean(1, keepdim=True)
        return torch.relu(torch.tanh(centred / torch.sqrt(variance + 1e-5)) @ weights + bias)

    def _copier(self, first: Any) -> Callable[[Any], Any]:
        """Returns a step that copies to and fro between the first state and another array."""
        second = self._torch.empty_like(first)

        def step(x: Any) -> Any:
            target = second if x is first else first
            target.copy_(x)
            return target

        return step

    def _captured(self, running: _Running, steps: int) -> Any:
        def warm() -> None:
            for _ in range(_WARMING_STEPS):
                running.step(running.state)

        def launch() -> None:
            state = running.state
            for _ in range(steps):
                state = running.step(state)

        return captured(self._torch, warm, launch)
