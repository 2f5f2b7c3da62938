"""What the peer asks of torch's compiler, with NumPy in torch's place: this needs neither torch nor a GPU."""

from __future__ import annotations

import pytest

from loadtests.peers.pytorch.compiled import TorchCompiled
from loadtests.workloads.loops import Loop, check_close, draw_rnn, result_in_numpy, run_rnn
from tests.loadtests.peers.counting import counting
from tests.loadtests.peers.numpy_as_torch import numpy_as_torch


@pytest.mark.parametrize("command", ["compiled", "reduced"])
def test_a_compiled_loop_comes_to_the_result_of_numpy(command: str) -> None:
    loop = Loop(draw_rnn(2, 8, seed=1), run_rnn)
    loops = TorchCompiled(numpy_as_torch(), {"rnn": loop})
    check_close(getattr(loops, command)("rnn", 20), result_in_numpy(loop, 20), command)


def test_products_are_true_float32() -> None:
    torch = numpy_as_torch()
    TorchCompiled(torch, {})
    assert torch.backends.cuda.matmul.allow_tf32 is False


def test_a_graph_is_replayed_for_every_hundred_steps_and_each_time_from_the_first_state() -> None:
    loops = TorchCompiled(numpy_as_torch(), {"count": counting()})
    assert loops.graphed("count", 300).tolist() == [300, 300]
    assert loops.graphed("count", 200).tolist() == [200, 200]


@pytest.mark.parametrize("command", ["compiled_ns", "reduced_ns", "graphed_ns"])
def test_every_way_to_run_a_loop_is_timed(command: str) -> None:
    loops = TorchCompiled(numpy_as_torch(), {"count": counting()})
    assert getattr(loops, command)("count", 100) > 0
