"""Trains nets by PyTorch on a device, in a process of its own: op by op, compiled, or by Fusewire's recorded step."""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing.connection import Connection
from time import perf_counter_ns
from typing import Any

from loadtests.measuring.workers import answer_commands
from loadtests.peers.library_process import commands_of, imported

REMOTE = "fusewire"  # the device
EAGER, RECORDED, COMPILED, REDUCED = "eager", "recorded", "torch.compile", "torch.compile, reduce-overhead"
_MODES = {COMPILED: "default", REDUCED: "reduce-overhead"}  # of PyTorch's compiler
_READ_EVERY = 100  # steps


def serve(connection: Connection, device: str, target: str | None = None) -> None:
    """Answers `losses NET WAY STEPS` and `step_us NET WAY STEPS`. `target` is the server of the device "fusewire"."""
    answer_commands(connection, commands_of(lambda: Trainer(device, target), "losses", "step_us"))


class Trainer:
    """Trains nets on a device. Products of float32 do not use TF32. Raises NotMeasured where PyTorch is missing."""

    def __init__(self, device: str, target: str | None) -> None:
        self._torch = imported("torch")
        self._torch.set_num_threads(1)  # the processors belong to the other processes too
        self._torch.backends.cuda.matmul.allow_tf32 = False
        self._torch.backends.cudnn.allow_tf32 = False
        if device == REMOTE:
            imported("fusewire.torch").connect(target, local=False)
        self._device = device
        self._steps: dict[tuple[str, str], Callable[[], Any]] = {}

    def losses(self, net: str, way: str, steps: int) -> list[float]:
        """Trains a new net, which is kept, and returns the loss of each step."""
        step = self._steps[net, way] = self._step(net, way)
        return [float(loss.item()) for loss in [step() for _ in range(steps)]]

    def step_us(self, net: str, way: str, steps: int) -> float:
        """Goes on training, and reads each hundredth loss. Returns the time of a step in µs."""
        step = self._steps[net, way]
        began_ns = perf_counter_ns()
        for number in range(1, steps + 1):
            loss = step()
            if number % _READ_EVERY == 0:
                loss.item()
        return (perf_counter_ns() - began_ns) / 1e3 / steps

    def _step(self, net: str, way: str) -> Callable[[], Any]:
        nets = imported("loadtests.workloads.nets")
        trained = nets.training(net, self._device, **({"capturable": True} if way == RECORDED else {}))
        if way in _MODES:
            trained = trained._replace(net=self._torch.compile(trained.net, mode=_MODES[way]))
        step: Callable[[], Any] = trained.step
        return imported("fusewire.torch").step(step) if way == RECORDED else step
