"""The network cells: the same in every process, and neither vanishing nor growing as loops."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from loadtests.workloads.cells import PARTS, Blocks, Cell, Conv2d, Mlp, Norm, Product, Split
from loadtests.workloads.loops import NUMPY

_PRODUCTS = (Product(8, 16, 16), Product(3, 5, 9), Product(3, 5, 9, is_transposed=True))
_CELLS = (Mlp(8, 64, 4), Conv2d(2, 8, 6), Split(4, 8), Blocks(3, 4, 16), Norm(8, 16), *_PRODUCTS)


@pytest.mark.parametrize("cell", _CELLS, ids=lambda cell: cell.name)
def test_a_cell_that_was_pickled_has_the_same_operands(cell: Cell) -> None:
    ours, theirs = cell.loop().operands, pickle.loads(pickle.dumps(cell)).loop().operands  # noqa: S301 - made here
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("cell", _CELLS, ids=lambda cell: cell.name)
def test_the_state_stays_float32_and_neither_vanishes_nor_grows(cell: Cell) -> None:
    loop = cell.loop()
    state = loop.read(loop.run(loop.operands, range(200), NUMPY))
    assert state.dtype == np.float32
    assert 1e-3 < np.abs(state).max() < 1e3


def test_the_split_form_is_its_formula() -> None:
    cell = Split(4, 8)
    x, weights, bias = cell.loop().operands
    parts = x.astype(np.float64).reshape(PARTS, 4, 8)
    normalised = (parts - parts.mean(2, keepdims=True)) / np.sqrt(parts.var(2, keepdims=True) + 1e-5)
    expected = np.maximum(np.tanh(normalised).reshape(-1, 8) @ weights + bias, 0)
    loop = cell.loop()
    np.testing.assert_allclose(loop.run(loop.operands, range(1), NUMPY), expected, rtol=1e-4, atol=1e-5)


def test_every_block_has_weights_of_its_own_and_takes_the_first_result() -> None:
    loop = Blocks(3, 4, 16).loop()
    first = loop.run(loop.operands, range(1), NUMPY)
    assert not np.array_equal(first[0], first[1])
    second = loop.run(type(loop.operands)((first[0],) * 3, *loop.operands[1:]), range(1), NUMPY)
    np.testing.assert_array_equal(loop.run(loop.operands, range(2), NUMPY)[2], second[2])
