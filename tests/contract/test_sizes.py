"""Which kernels a known program needs with other sizes: none for other sizes from 2 up, with one exception.

A size of 1 where there were more is a broadcast, for which a kernel of its own may be compiled. And a long reduction
to little is done in two steps, while a short one is done in one.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fusewire_kernels.build import design
from fusewire_kernels.graph.long_reductions import LONG
from fusewire_protos.ops import dtypes
from fusewire_protos.programs.program import Program
from tests.kernels.programs import Writer

_OfBatch = Callable[[int], Program]

_WIDTH = 24
_SIZES = (2, 5, 9, 64, 1000)
_LONG = 1 << 20


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
    x, bias = w.input(batch, _LONG), w.input(_LONG)
    return w.program(w.add(x, bias))


def _standardised(batch: int) -> Program:
    """Statistics of the batch, and weights of their own rank behind them."""
    w = Writer()
    x, gain, bias, epsilon = w.input(batch, _WIDTH), w.input(1, _WIDTH), w.input(1, _WIDTH), w.scalar()
    centred = w.subtract(x, w.mean(x, axes=(0,), keepdims=True))
    variance = w.mean(w.square(centred), axes=(0,), keepdims=True)
    return w.program(w.add(w.multiply(w.multiply(centred, w.rsqrt(w.add(variance, epsilon))), gain), bias))


def _spread(batch: int) -> Program:
    """A sum over the batch of what meets a row of its own rank."""
    w = Writer()
    x, centre = w.input(batch, _WIDTH), w.input(1, _WIDTH)
    return w.program(w.sum(w.square(w.subtract(x, centre)), axes=(0,), keepdims=True))


def _squared_error(batch: int) -> Program:
    """A mean over everything, of what a bias was added to."""
    w = Writer()
    x, u, b, y = w.input(batch, _WIDTH), w.input(_WIDTH, 8), w.input(8), w.input(batch, 8)
    return w.program(w.mean(w.square(w.subtract(w.add(w.matmul(x, u), b), y)), axes=(0, 1), keepdims=False))


def _trained_with_biases_of_their_own_rank(batch: int) -> Program:
    w = Writer()
    x, u, b, v, d, y = (w.input(*shape) for shape in ((batch, 24), (24, 32), (1, 32), (32, 10), (1, 10), (batch, 10)))
    rate = w.scalar()
    h = w.tanh(w.add(w.matmul(x, u), b))
    error = w.subtract(w.softmax(w.add(w.matmul(h, v), d), axes=(1,)), y)
    back = w.multiply(w.matmul(error, w.transpose(v, permutation=(1, 0))), h)
    biases = [w.sum(each, axes=(0,), keepdims=True) for each in (back, error)]
    return w.program(*[w.subtract(old, w.multiply(each, rate)) for old, each in zip((b, d), biases, strict=True)])


def _masked_attention(batch: int) -> Program:
    """A mask for all, and one for each sequence."""
    w = Writer()
    scores, causal, padding = w.input(batch, 4, 6, 6), w.input(1, 1, 6, 6), w.input(batch, 1, 1, 6)
    return w.program(w.softmax(w.add(w.add(scores, causal), padding), axes=(3,)))


def _channels(batch: int) -> Program:
    w = Writer()
    x, scale, bias = w.input(batch, 3, 8, 8), w.input(1, 3, 1, 1), w.input(3, 1, 1)
    return w.program(w.mean(w.relu(w.add(w.multiply(x, scale), bias)), axes=(2, 3), keepdims=False))


def _sequences(batch: int) -> Program:
    """Means over time and over both, and positions of their own rank."""
    w = Writer()
    x, positions, bias = w.input(batch, 6, 24), w.input(1, 6, 24), w.input(24)
    y = w.add(w.add(x, positions), bias)
    return w.program(w.mean(y, axes=(1,), keepdims=False), w.sum(w.add(x, bias), axes=(0, 1), keepdims=False))


def _value_with_a_bias_of_its_own_rank(batch: int) -> Program:
    w = Writer()
    x, u, b = w.input(batch, _WIDTH), w.input(_WIDTH, 1), w.input(1, 1)
    return w.program(w.add(w.matmul(x, u), b))


def _numbers_and_one_for_all(batch: int) -> Program:
    w = Writer()
    return w.program(w.add(w.input(batch), w.input(1)))


def _squared_error_with_a_bias_of_its_own_rank(batch: int) -> Program:
    w = Writer()
    x, b = w.input(batch, _WIDTH), w.input(1, _WIDTH)
    return w.program(w.mean(w.square(w.subtract(x, b)), axes=(0, 1), keepdims=False))


def _columns(batch: int) -> Program:
    """A batch along the last axis."""
    w = Writer()
    x, b = w.input(_WIDTH, batch), w.input(_WIDTH, 1)
    return w.program(w.add(x, b))


def _channels_standardised(batch: int) -> Program:
    """Reduced along the batch and along what is not next to it."""
    w = Writer()
    x = w.input(batch, 3, 8, 8)
    return w.program(w.subtract(x, w.mean(x, axes=(0, 2, 3), keepdims=True)))


def _shifted_by_the_greatest(batch: int) -> Program:
    """What is reduced along the batch meets what was made of the same rows elsewhere."""
    w = Writer()
    x, epsilon = w.input(batch, _WIDTH), w.scalar()
    return w.program(w.add(w.layer_norm(x, epsilon, axes=(1,)), w.max(x, axes=(0,), keepdims=False)))


_PROGRAMS = (
    *(_recurrent, _summed, _layer, _normalised_rows, _centred_columns, _loss, _trained, _block, _attention, _features),
    *(_value, _embedded, _images, _numbers, _with_a_bias_of_its_own_rank, _with_a_float_for_each_row, _of_long_rows),
    *(_standardised, _spread, _squared_error, _trained_with_biases_of_their_own_rank, _masked_attention, _channels),
    *(_sequences, _shifted_by_the_greatest, _value_with_a_bias_of_its_own_rank, _numbers_and_one_for_all),
    *(_squared_error_with_a_bias_of_its_own_rank, _columns, _channels_standardised),
)


def _kernels(program: Program) -> set[str]:
    return set(design(program, for_gpu=False).kernels)


@pytest.mark.parametrize("of_batch", _PROGRAMS)
def test_another_size_needs_no_new_kernel(of_batch: _OfBatch) -> None:
    assert len({frozenset(_kernels(of_batch(batch))) for batch in _SIZES}) == 1


@pytest.mark.parametrize("of_batch", [_recurrent, _attention])
def test_nor_does_a_size_of_one_where_nothing_broadcasts(of_batch: _OfBatch) -> None:
    assert _kernels(of_batch(1)) == _kernels(of_batch(2))


def test_a_layer_of_a_batch_of_one_is_the_epilogue_of_a_product_as_well() -> None:
    assert _kernels(_layer(1)) == _kernels(_layer(2))


def test_a_sum_of_everything_needs_other_kernels_once_it_is_long() -> None:
    longest_at_once = LONG // _WIDTH
    assert _kernels(_summed(longest_at_once)) == _kernels(_summed(2))
    assert _kernels(_summed(longest_at_once + 1)) != _kernels(_summed(2))
    assert _kernels(_summed(_LONG)) == _kernels(_summed(2 * _LONG))
