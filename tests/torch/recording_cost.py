"""Measures what the device costs the client: µs of processor time of all its threads, a training step and an op.

`python -m tests.torch.recording_cost [steps]` prints each case for kernels that record, for kernels that record nothing
but return tensors of the right shapes (the least that PyTorch's own half costs), and for PyTorch on the CPU. "own" is
the part of the thread that calls the ops; autograd's thread and those that send have the rest. Each figure is the least
of several, because what else runs on the machine adds to it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from tests.torch.nets import Attention, Recurrent

STEPS = 100
REPEATS = 7
OPS = 2000
COLUMNS = "device", "own", "bare", "own", "a kernel", "CPU"

_new_tensor = torch._C._acc.create_empty_tensor
_view = torch._C._dynamo.guards._reinterpret_tensor  # type: ignore[attr-defined, unused-ignore]


class Replay:
    """Lets the kernels of the device repeat the shapes of what they returned, in their order, and do nothing else."""

    def __init__(self) -> None:
        self.mode = "run"
        self.made: list[Callable[..., Any]] = []
        self.rest: Iterator[Callable[..., Any]] = iter(())
        self._is_within = False

    def wrap(self, kernel: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **options: Any) -> Any:
            if self.mode == "bare":
                return next(self.rest)(arguments)
            if self.mode == "run" or self._is_within:
                return kernel(*arguments, **options)
            self._is_within = True
            try:
                result = kernel(*arguments, **options)
            finally:
                self._is_within = False
            self.made.append(_again(result, arguments))
            return result

        return run

    def note(self, step: Callable[[], Any]) -> None:
        self.made, self.mode = [], "note"
        step()
        self.mode = "run"

    def again(self, steps: int) -> None:
        self.rest, self.mode = iter(self.made * steps), "bare"


REPLAY = Replay()


def _again(result: Any, arguments: tuple[Any, ...]) -> Callable[..., Any]:
    """Returns what makes a result like this one of the arguments of another call."""
    first = arguments[0] if arguments and isinstance(arguments[0], torch.Tensor) else None
    if result is first and first is not None:
        return lambda given: given[0]
    if isinstance(result, torch.Tensor):
        shape, dtype = tuple(result.shape), result.dtype
        if first is not None and result.untyped_storage() is first.untyped_storage():
            stride, offset = result.stride(), result.storage_offset() - first.storage_offset()
            return lambda given: _view(given[0], shape, stride, offset)
        return lambda _given: _new_tensor(shape, dtype)
    if isinstance(result, tuple | list):
        kind, parts = type(result), [_again(each, ()) for each in result]
        return lambda given: kind([part(given) for part in parts])
    return lambda _given: result


def _wrap_kernels() -> None:
    """Gives each kernel that is registered for the device from now on the ways of `REPLAY`."""
    impl = torch.library.Library.impl

    def wrapped(self: Any, name: Any, kernel: Any, key: str = "", **options: Any) -> Any:
        return impl(self, name, REPLAY.wrap(kernel) if key == "PrivateUse1" else kernel, key, **options)

    torch.library.Library.impl = wrapped  # type: ignore[method-assign, unused-ignore]


def _mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 4))


def training(name: str, device: str) -> Callable[[], Any]:
    """Returns one training step of a case."""
    torch.manual_seed(0)
    rows, sequences = torch.randn(32, 16), torch.randn(8, 8, 16)
    tokens = torch.randint(0, 50, (4, 5))
    cases: dict[str, tuple[Callable[[], nn.Module], torch.Tensor, int]] = {
        "mlp sgd": (_mlp, rows, 4),
        "mlp adam": (_mlp, rows, 4),
        "lstm": (partial(Recurrent, nn.LSTM), sequences, 4),
        "attention": (Attention, tokens, 50),
    }
    net, x, classes = cases[name]
    module, x = net().to(device), x.to(device)
    y = torch.randint(0, classes, (len(x) if name != "attention" else x.numel(),)).to(device)
    is_sgd = name == "mlp sgd"
    optimizer: Any = (torch.optim.SGD if is_sgd else torch.optim.Adam)(module.parameters(), lr=1e-3, foreach=True)

    def step() -> Any:
        loss = functional.cross_entropy(module(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step


def ops(device: str) -> dict[str, Callable[[], Any]]:
    """Returns ops by name, each of small tensors."""
    x, y, w, total = [torch.rand(64, 64).to(device) for _ in range(4)]
    v = torch.rand(64, 64).to(device).requires_grad_()
    return {
        "x + y": lambda: x + y,
        "x + y, grad": lambda: x + v,
        "x * 2.0": lambda: x * 2.0,
        "x * 2.0, grad": lambda: v * 2.0,
        "x @ w": lambda: x @ w,
        "x @ w, grad": lambda: x @ v,
        "relu": partial(torch.relu, x),
        "relu, grad": partial(torch.relu, v),
        "tanh": partial(torch.tanh, x),
        "x.sum()": x.sum,
        "x.sum(1)": lambda: x.sum(1),
        "x.t()": x.t,
        "x.view(-1)": lambda: x.view(-1),
        "x[3]": lambda: x[3],
        "add_": lambda: total.add_(y),
        "mul_(0.5)": lambda: total.mul_(0.5),
    }


def _timed(run: Callable[[], Any], count: int) -> tuple[float, float]:
    """Returns µs of processor time of all threads, and of this one, for one of `count` calls."""
    began, own = time.process_time_ns(), time.thread_time_ns()
    for _ in range(count):
        run()
    own = time.thread_time_ns() - own
    return (time.process_time_ns() - began) / 1000 / count, own / 1000 / count


def _cost(run: Callable[[], Any], count: int, *, is_bare: bool) -> tuple[float, float]:
    found = []
    for _ in range(REPEATS):
        if is_bare:
            REPLAY.again(count)
        found.append(_timed(run, count))
        REPLAY.mode = "run"
    return min(each for each, _ in found), min(own for _, own in found)


def _row(name: str, make: Callable[[str], Callable[[], Any]], count: int) -> None:
    there, here = make("cpu"), make("fusewire")
    for run in (here, there):
        for _ in range(2 * count if count < OPS else count):
            run()
    REPLAY.note(here)
    calls = len(REPLAY.made)
    (recorded, own), (on_cpu, _) = _cost(here, count, is_bare=False), _cost(there, count, is_bare=False)
    bare, own_bare = _cost(here, count, is_bare=True)
    figures = recorded, own, bare, own_bare, (own - own_bare) / calls, on_cpu
    print(f"{name:16}{calls:8}" + "".join(f"{each:10.2f}" for each in figures), flush=True)


def main(steps: int = STEPS) -> None:
    _wrap_kernels()
    import fusewire.torch  # noqa: PLC0415
    from fusewire.testing import serve_subprocess  # noqa: PLC0415

    torch.set_num_threads(1)
    with serve_subprocess("cpu") as server:
        fusewire.torch.connect(server.grpc)
        print(f"{'µs':16}{'kernels':>8}" + "".join(f"{each:>10}" for each in COLUMNS))
        for name in ("mlp sgd", "mlp adam", "lstm", "attention"):
            _row(name, lambda device, name=name: training(name, device), steps)  # type: ignore[misc]
        for name in ops("cpu"):
            _row(name, lambda device, name=name: ops(device)[name], OPS)  # type: ignore[misc]


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
