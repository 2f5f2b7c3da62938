"""The libraries that Fusewire is compared to, each in a process of its own."""

from __future__ import annotations

import numpy as np
import pytest

from loadtests.microbenchmarks.catalogue import MICROBENCHMARKS
from loadtests.peers.libraries import LIBRARIES
from loadtests.peers.numpy_loops import run_chain_in_place
from loadtests.workloads.loops import Loop, check_close, draw_chain, draw_rnn, result_in_numpy, run_chain, run_rnn


def test_every_backend_has_a_library_to_compare_to() -> None:
    assert LIBRARIES.keys() == MICROBENCHMARKS.keys()


@pytest.mark.slow
def test_numpy_runs_loops_in_a_process_of_its_own_and_says_how_long_they_took() -> None:
    loops = {"rnn": Loop(draw_rnn(2, 8, seed=1), run_rnn), "chain": Loop(draw_chain(50, seed=2), run_chain)}
    with LIBRARIES["cpu"].running(loops) as peer:
        for name, loop in loops.items():
            np.testing.assert_array_equal(peer.ask("result", name, 3), result_in_numpy(loop, 3))
            assert peer.ask("run_ns", name, 3) > 0


def test_the_pointwise_loop_that_writes_over_one_array_comes_to_the_same() -> None:
    loop = Loop(draw_chain(100, seed=1), run_chain)
    before = loop.operands.x.copy()
    check_close(result_in_numpy(loop._replace(run=run_chain_in_place), 5), result_in_numpy(loop, 5), "in place")
    np.testing.assert_array_equal(loop.operands.x, before)
