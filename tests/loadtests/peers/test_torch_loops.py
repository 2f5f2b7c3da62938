"""What the peers ask of torch, with NumPy in its place: this needs neither torch nor a GPU."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any, NamedTuple, Self

import numpy as np
import pytest

from loadtests.peers.torch_loops import TorchLoops
from loadtests.workloads.loops import Functions, Loop, draw_rnn, result_in_numpy, run_rnn


class _Tensor(np.ndarray[Any, Any]):
    """An array with the methods of a tensor that the peers use."""

    def cuda(self) -> Self:
        return self

    def cpu(self) -> Self:
        return self

    def numpy(self) -> np.ndarray[Any, Any]:
        return np.array(self)

    def clone(self) -> Self:
        return self.copy()

    def copy_(self, other: Any) -> None:
        if _Graph.capturing is not None:
            _Graph.capturing.capture(self, other - self)
        else:
            self[...] = other


class _Graph:
    """While it captures, nothing is written. A replay adds what would have been added."""

    capturing: _Graph | None = None

    def capture(self, target: _Tensor, difference: _Tensor) -> None:
        self._target = target
        self._difference = difference

    def replay(self) -> None:
        self._target += self._difference


class _Stream:
    def wait_stream(self, _other: Self) -> None:
        pass


@contextmanager
def _graph(captured: _Graph) -> Iterator[None]:
    _Graph.capturing = captured
    yield
    _Graph.capturing = None


def _in_stream(_stream: _Stream) -> AbstractContextManager[None]:
    return nullcontext()


def _numpy_as_torch() -> Any:
    cuda = SimpleNamespace(
        Stream=_Stream,
        current_stream=_Stream,
        stream=_in_stream,
        synchronize=lambda: None,
        CUDAGraph=_Graph,
        graph=_graph,
    )
    return SimpleNamespace(
        from_numpy=lambda array: array.view(_Tensor),
        sigmoid=lambda x: 1 / (1 + np.exp(-x)),
        tanh=np.tanh,
        relu=lambda x: np.maximum(x, 0),
        backends=SimpleNamespace(cuda=SimpleNamespace(matmul=SimpleNamespace(allow_tf32=True))),
        cuda=cuda,
    )


class _Counted(NamedTuple):
    count: Any
    step: Any


def _count(operands: _Counted, steps: Iterable[object], _functions: Functions) -> Any:
    count, step = operands
    for _ in steps:
        count = count + step
    return count


def _counting() -> Loop:
    return Loop(_Counted(np.zeros(2, np.float32), np.ones(2, np.float32)), _count)


def test_a_loop_in_torch_comes_to_the_result_of_numpy() -> None:
    loop = Loop(draw_rnn(2, 8, seed=1), run_rnn)
    result = TorchLoops(_numpy_as_torch(), {"rnn": loop}).result("rnn", 20)
    np.testing.assert_allclose(result, result_in_numpy(loop, 20), rtol=1e-6)


def test_products_are_true_float32() -> None:
    torch = _numpy_as_torch()
    TorchLoops(torch, {})
    assert torch.backends.cuda.matmul.allow_tf32 is False


def test_a_graph_is_replayed_for_every_hundred_steps_and_each_time_from_the_first_state() -> None:
    loops = TorchLoops(_numpy_as_torch(), {"count": _counting()})
    assert loops.replayed("count", 300).tolist() == [300, 300]
    assert loops.replayed("count", 200).tolist() == [200, 200]
    assert loops.result("count", 7).tolist() == [7, 7]


@pytest.mark.parametrize("command", ["run_ns", "replay_ns"])
def test_both_ways_to_run_a_loop_are_timed(command: str) -> None:
    loops = TorchLoops(_numpy_as_torch(), {"count": _counting()})
    assert getattr(loops, command)("count", 100) > 0
