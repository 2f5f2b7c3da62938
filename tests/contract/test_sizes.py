"""Which kernels a known program needs with other sizes: no new ones, but for two exceptions.

A dimension of length one is no dimension: what broadcasts along a batch does not along a batch of one. And a long
reduction to little has a kernel to itself, while a short one is fused with what comes before it.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fusewire_kernels.build import design
from fusewire_kernels.needs import LONG_WALK
from fusewire_protos.program import Program
from tests.kernels.programs import Writer

_OfBatch = Callable[[int], Program]

_WIDTH = 24
_SIZES = (2, 5, 9, 64, 1000)


def _recurrent(batch: int) -> Program:
    """Everything that meets has the shape of the batch."""
    w = Writer()
    x, h = w.input(batch, _WIDTH), w.input(batch, 32)
    u, v, scale = w.input(_WIDTH, 32), w.input(32, 32), w.scalar()
    z = w.multiply(w.add(w.matmul(x, u), w.matmul(h, v)), scale)
    return w.program(w.add(w.tanh(z), w.multiply(h, scale)))


def _summed(batch: int) -> Program:
    w = Writer()
    x, y = w.input(batch, _WIDTH), w.input(batch, _WIDTH)
    return w.program(w.sum(w.multiply(x, y), axes=(0, 1), keepdims=False))


def _layer(batch: int) -> Program:
    """A bias, broadcast along the batch."""
    w = Writer()
    x, u, b = w.input(batch, _WIDTH), w.input(_WIDTH, 32), w.input(32)
    return w.program(w.relu(w.add(w.matmul(x, u), b)))


def _normalised_rows(batch: int) -> Program:
    """What a row is reduced to meets that row only: rows are a dimension of their own."""
    w = Writer()
    x, epsilon = w.input(batch, _WIDTH), w.scalar()
    return w.program(w.layer_norm(x, epsilon, axes=(1,)))


def _centred_columns(batch: int) -> Program:
    """A mean over the batch, broadcast along it."""
    w = Writer()
    x = w.input(batch, _WIDTH)
    return w.program(w.subtract(x, w.mean(x, axes=(0,), keepdims=True)))


_PLAIN = (_recurrent, _summed)
_BROADCASTING = (_layer, _normalised_rows, _centred_columns)


def _kernels(program: Program) -> set[str]:
    return set(design(program).kernels)


@pytest.mark.parametrize("of_batch", [*_PLAIN, *_BROADCASTING])
def test_another_batch_size_needs_no_new_kernel(of_batch: _OfBatch) -> None:
    assert len({frozenset(_kernels(of_batch(batch))) for batch in _SIZES}) == 1


@pytest.mark.parametrize("of_batch", _PLAIN)
def test_nor_does_a_batch_of_one_where_nothing_broadcasts_along_it(of_batch: _OfBatch) -> None:
    assert _kernels(of_batch(1)) == _kernels(of_batch(5))


@pytest.mark.parametrize("of_batch", _BROADCASTING)
def test_a_batch_of_one_needs_other_kernels_where_something_broadcasts_along_it(of_batch: _OfBatch) -> None:
    assert _kernels(of_batch(1)) - _kernels(of_batch(5))


def test_a_sum_of_everything_needs_another_kernel_once_it_is_long() -> None:
    longest_fused = LONG_WALK // _WIDTH
    assert _kernels(_summed(longest_fused)) == _kernels(_summed(2))
    assert len(_kernels(_summed(longest_fused + 1))) == 2
