"""What the peers ask of torch, with NumPy in its place: this needs neither torch nor a GPU."""

from __future__ import annotations

import numpy as np
import pytest

from loadtests.peers.pytorch.loops import TorchLoops
from loadtests.workloads.loops import Loop, draw_rnn, result_in_numpy, run_rnn
from tests.loadtests.peers.counting import counting
from tests.loadtests.peers.numpy_as_torch import numpy_as_torch


def test_a_loop_in_torch_comes_to_the_result_of_numpy() -> None:
    loop = Loop(draw_rnn(2, 8, seed=1), run_rnn)
    result = TorchLoops(numpy_as_torch(), {"rnn": loop}).result("rnn", 20)
    np.testing.assert_allclose(result, result_in_numpy(loop, 20), rtol=1e-6)


def test_products_are_true_float32() -> None:
    torch = numpy_as_torch()
    TorchLoops(torch, {})
    assert torch.backends.cuda.matmul.allow_tf32 is False


def test_a_graph_is_replayed_for_every_hundred_steps_and_each_time_from_the_first_state() -> None:
    loops = TorchLoops(numpy_as_torch(), {"count": counting()})
    assert loops.replayed("count", 300).tolist() == [300, 300]
    assert loops.replayed("count", 200).tolist() == [200, 200]
    assert loops.result("count", 7).tolist() == [7, 7]


@pytest.mark.parametrize("command", ["run_ns", "replay_ns"])
def test_both_ways_to_run_a_loop_are_timed(command: str) -> None:
    loops = TorchLoops(numpy_as_torch(), {"count": counting()})
    assert getattr(loops, command)("count", 100) > 0
