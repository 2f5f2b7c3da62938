"""Which kernels a known program needs with other sizes: no new ones, a batch of one included, with three exceptions.

Of a batch of one the shapes may leave open what broadcasts along a longer one. A row that takes long runs in pieces.
And a long reduction to little has a kernel to itself, while a short one is fused with what comes before it.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fusewire_kernels.batch_of_one import MOST_OPERATIONS
from fusewire_kernels.build import design
from fusewire_kernels.needs import LONG_WALK
from fusewire_protos import dtypes
from fusewire_protos.program import Program
from tests.kernels.programs import Writer

_OfBatch = Callable[[int], Program]

_WIDTH = 24
_SIZES = (1, 2, 5, 9, 64, 1000)


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


def _loss(batch: int) -> Program:
    """Of labels, one for each row."""
    w = Writer()
    x, labels = w.input(batch, 10), w.input(batch, dtype=dtypes.int64)
    hits = w.one_hot(labels, classes=10, dtype=dtypes.float32.code)
    return w.program(w.sum(w.multiply(w.log_softmax(x, axes=(1,)), hits), axes=(1,), keepdims=False))


def _trained(batch: int) -> Program:
    """A step of gradient descent: sums over the batch, and products along it."""
    w = Writer()
    x, u, b, v, d, y = (w.input(*shape) for shape in ((batch, 24), (24, 32), (32,), (32, 10), (10,), (batch, 10)))
    rate = w.scalar()
    h = w.relu(w.add(w.matmul(x, u), b))
    error = w.subtract(w.softmax(w.add(w.matmul(h, v), d), axes=(1,)), y)
    back = w.multiply(w.matmul(error, w.transpose(v, permutation=(1, 0))), h)
    weights = [w.matmul(w.transpose(left, permutation=(1, 0)), right) for left, right in ((x, back), (h, error))]
    biases = [w.sum(each, axes=(0,), keepdims=False) for each in (back, error)]
    pairs = zip((u, v, b, d), (*weights, *biases), strict=True)
    return w.program(*[w.subtract(old, w.multiply(gradient, rate)) for old, gradient in pairs])


def _block(batch: int) -> Program:
    """Sequences: layer_norm with weights of its own, a hidden layer, and what went around both."""
    w = Writer()
    x, gain, bias, u, v = (w.input(*shape) for shape in ((batch, 6, 24), (24,), (24,), (24, 48), (48, 24)))
    epsilon = w.scalar()
    n = w.add(w.multiply(w.layer_norm(x, epsilon, axes=(2,)), gain), bias)
    return w.program(w.add(x, w.matmul(w.gelu(w.matmul(n, u)), v)))


def _attention(batch: int) -> Program:
    """Products of two batches."""
    w = Writer()
    queries, keys, values = (w.input(batch, 4, 6, 24) for _ in range(3))
    scale = w.scalar()
    scores = w.multiply(w.matmul(queries, w.transpose(keys, permutation=(0, 1, 3, 2))), scale)
    return w.program(w.matmul(w.softmax(scores, axes=(3,)), values))


def _features(batch: int) -> Program:
    w = Writer()
    x, mean, scale, others = w.input(batch, 24), w.input(24), w.input(24), w.input(batch, 8)
    return w.program(w.concat(w.divide(w.subtract(x, mean), scale), w.tanh(others), axis=1))


def _value(batch: int) -> Program:
    """One number a row, and a bias of one."""
    w = Writer()
    x, u, b = w.input(batch, 24), w.input(24, 1), w.input(1)
    return w.program(w.add(w.matmul(x, u), b))


def _embedded(batch: int) -> Program:
    w = Writer()
    table, indices, bias = w.input(50, 16), w.input(batch, dtype=dtypes.int64), w.input(16)
    return w.program(w.add(w.take(table, indices, axis=0), bias))


def _images(batch: int) -> Program:
    w = Writer()
    x, mean, scale, bias = w.input(batch, 3, 8, 8), w.input(3, 1, 1), w.input(3, 1, 1), w.input(192)
    centred = w.divide(w.subtract(x, mean), scale)
    return w.program(w.add(w.reshape(centred, shape=(batch, 192)), bias))


def _numbers(batch: int) -> Program:
    w = Writer()
    x, y, scale = w.input(batch), w.input(batch), w.scalar()
    return w.program(w.multiply(w.add(x, y), scale))


def _with_a_bias_of_its_own_rank(batch: int) -> Program:
    w = Writer()
    x, bias = w.input(batch, _WIDTH), w.input(1, _WIDTH)
    return w.program(w.add(x, bias))


def _with_a_float_for_each_row(batch: int) -> Program:
    w = Writer()
    x, scale = w.input(batch, _WIDTH), w.input(batch)
    return w.program(w.multiply(x, w.reshape(scale, shape=(batch, 1))))


def _of_long_rows(batch: int) -> Program:
    w = Writer()
    x, bias = w.input(batch, 2 * MOST_OPERATIONS), w.input(2 * MOST_OPERATIONS)
    return w.program(w.add(x, bias))


_PROGRAMS = (
    *(_recurrent, _summed, _layer, _normalised_rows, _centred_columns, _loss, _trained, _block, _attention, _features),
    *(_value, _embedded, _images, _numbers),
)


def _kernels(program: Program) -> set[str]:
    return set(design(program).kernels)


@pytest.mark.parametrize("of_batch", _PROGRAMS)
def test_another_batch_size_needs_no_new_kernel(of_batch: _OfBatch) -> None:
    assert len({frozenset(_kernels(of_batch(batch))) for batch in _SIZES}) == 1


@pytest.mark.parametrize("of_batch", [_with_a_bias_of_its_own_rank, _with_a_float_for_each_row, _of_long_rows])
def test_a_batch_of_one_needs_another_kernel_where_shapes_leave_open_what_broadcasts_or_rows_are_long(
    of_batch: _OfBatch,
) -> None:
    of_one, *of_many = [frozenset(_kernels(of_batch(batch))) for batch in _SIZES]
    assert len(set(of_many)) == 1
    assert of_one != of_many[0]


def test_a_sum_of_everything_needs_another_kernel_once_it_is_long() -> None:
    longest_fused = LONG_WALK // _WIDTH
    assert _kernels(_summed(longest_fused)) == _kernels(_summed(2))
    assert len(_kernels(_summed(longest_fused + 1))) == 2
