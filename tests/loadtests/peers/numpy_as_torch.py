"""NumPy with the names of torch, so that what a peer asks of torch is tested without torch and without a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any, Self

import numpy as np

from loadtests.workloads.loops import numpy_conv


class Tensor(np.ndarray[Any, Any]):
    """An array with the methods of a tensor that the peers use."""

    def cuda(self) -> Self:
        return self

    def cpu(self) -> Self:
        return self

    def numpy(self) -> np.ndarray[Any, Any]:
        return np.array(self)

    def mean(self, axis: int, *, keepdim: bool = False, keepdims: bool = False) -> Any:  # type: ignore[override]
        return super().mean(axis, keepdims=keepdim or keepdims)

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
    _target: Tensor | None = None

    def capture(self, target: Tensor, difference: Tensor) -> None:
        self._target = target
        self._difference = difference

    def replay(self) -> None:
        if self._target is not None:
            self._target += self._difference


class _Stream:
    def wait_stream(self, _other: Self) -> None:
        pass


class _Event:
    """An event between which and the next one a millisecond passes."""

    def __init__(self, enable_timing: bool) -> None:
        assert enable_timing

    def record(self) -> None:
        pass

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, _later: Self) -> float:
        return 1.0


@contextmanager
def _graph(captured: _Graph) -> Iterator[None]:
    _Graph.capturing = captured
    yield
    _Graph.capturing = None


def _in_stream(_stream: _Stream) -> AbstractContextManager[None]:
    return nullcontext()


def _convolution_relu(x: Any, w: Any, bias: Any, *parameters: object) -> Any:
    assert parameters == ((1, 1), (1, 1), (1, 1), 1), "stride, padding, dilation and groups"
    return np.maximum(numpy_conv(x, w) + bias[:, None, None], 0).view(Tensor)


def numpy_as_torch() -> Any:
    cuda = SimpleNamespace(
        Stream=_Stream,
        current_stream=_Stream,
        stream=_in_stream,
        synchronize=lambda: None,
        CUDAGraph=_Graph,
        graph=_graph,
        Event=_Event,
    )
    return SimpleNamespace(
        from_numpy=lambda array: array.view(Tensor),
        sigmoid=lambda x: 1 / (1 + np.exp(-x)),
        tanh=np.tanh,
        sqrt=np.sqrt,
        concat=np.concatenate,
        relu=lambda x: np.maximum(x, 0),
        compile=lambda function, mode=None, dynamic=None: function,
        empty_like=np.empty_like,
        _addmm_activation=lambda bias, x, weights: np.maximum(x @ weights + bias, 0),
        cudnn_convolution_relu=_convolution_relu,
        set_grad_enabled=lambda _wanted: None,
        backends=SimpleNamespace(
            cuda=SimpleNamespace(matmul=SimpleNamespace(allow_tf32=True)),
            cudnn=SimpleNamespace(allow_tf32=True, benchmark=False),
        ),
        cuda=cuda,
    )
