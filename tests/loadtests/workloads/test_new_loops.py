"""Loops that no server has seen."""

from __future__ import annotations

import pickle

import numpy as np

from loadtests.workloads.loops import result_in_numpy
from loadtests.workloads.new_loops import POINTWISE, new_loop


def test_a_step_is_a_product_and_the_pointwise_ops_of_each_cell_in_turn() -> None:
    loop = new_loop([(0, 5), (1, 2, 3, 4)], 8, seed=1)
    x, weights, b, z = loop.operands
    for _ in range(3):
        x = np.tanh(x @ weights + b)
        x = 1 / (1 + np.exp((x @ weights) * z - z))
    np.testing.assert_allclose(result_in_numpy(loop, 3), x, rtol=1e-5)


def test_values_stay_small_through_a_thousand_steps() -> None:
    loop = new_loop([tuple(range(POINTWISE))], 64, seed=2)
    assert np.abs(result_in_numpy(loop, 1000)).max() <= 1


def test_a_loop_travels_to_another_process() -> None:
    loop = new_loop([(0, 1)], 8, seed=3)
    np.testing.assert_array_equal(result_in_numpy(pickle.loads(pickle.dumps(loop)), 2), result_in_numpy(loop, 2))  # noqa: S301 - made here
