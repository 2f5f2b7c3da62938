"""The one order of reductions: the order in NumPy against the same order in loops."""

from __future__ import annotations

import numpy as np
import pytest

from fusewire_kernels.ops.order import reduced
from tests.kernels.codegen import order_of_summation


@pytest.mark.parametrize("length", [0, 1, 31, 32, 33, 1000, 1024, 1025, 5000])
@pytest.mark.parametrize("chunk", [32, 1024])
def test_the_order_is_that_of_lanes_a_tree_and_chunks(length: int, chunk: int) -> None:
    values = np.random.default_rng(length).standard_normal((3, length)).astype(np.float32)
    expected = order_of_summation.reduced(values, np.add, 0, chunk)
    assert reduced(np, values, np.add, 0, chunk).tobytes() == expected.tobytes()
