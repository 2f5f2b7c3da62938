"""What the recurrent loop is compared to, without a server and without a peer's process."""

from __future__ import annotations

from typing import Any

import pytest

from loadtests.measuring.figure import Figure, Verdict
from loadtests.microbenchmarks import rnn
from loadtests.microbenchmarks.limits import held_to_limit
from loadtests.microbenchmarks.rnn import _Measured, _Shape
from loadtests.peers.libraries import LIBRARIES
from loadtests.system.service import Count
from loadtests.workloads.loops import RNN_OPS

_OPS = rnn._STEPS * RNN_OPS


class _Service:
    def count(self) -> Count:
        return Count(0, 0, 0, 0)


class _Timed:
    """Fusewire and its peer: each way to run the loop takes the ns an op that it is given."""

    def __init__(self, **ns_an_op: int) -> None:
        self._ns_an_op = ns_an_op

    def run_ns(self, _steps: int) -> int:
        return self._ns_an_op["fusewire"] * _OPS

    def ask(self, command: str, _loop: str, _steps: int) -> int:
        return self._ns_an_op[command] * _OPS


def _measured(backend: str, **ns_an_op: int) -> _Measured:
    timed: Any = _Timed(**ns_an_op)
    service: Any = _Service()
    return rnn._take_turns(service, timed, timed, LIBRARIES[backend])


def _figure(shape: _Shape, backend: str, **ns_an_op: int) -> Figure:
    measured = _measured(backend, **ns_an_op)._replace(spent=Count(ops=1000, rows=1, submissions=1, device_thread_ns=1))
    return held_to_limit(rnn._figure(shape, LIBRARIES[backend], measured), backend)


def test_on_the_gpu_the_loop_is_held_to_torch_eager_and_a_graph_is_told() -> None:
    figure = _figure(_Shape(64, 1024), "cuda", fusewire=3000, run_ns=2000, replay_ns=1000)
    assert figure.peer is not None
    assert (figure.name, figure.value) == ("rnn_b64_h1024", 3.0)
    assert (figure.peer.name, figure.peer.ratio) == ("torch eager", 1.5)
    assert figure.verdict is Verdict.MISSED
    assert figure.notes[-1] == "a graph of 100 steps in torch: 1.00 µs"


def test_on_the_cpu_the_loop_is_held_to_numpy() -> None:
    figure = _figure(_Shape(1, 256), "cpu", fusewire=1400, run_ns=1000)
    assert figure.peer is not None
    assert figure.peer.name == "NumPy"
    assert figure.peer.ratio == pytest.approx(1.4)
    assert figure.verdict is Verdict.OK
