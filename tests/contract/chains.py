"""Programs as users write them, over every dtype that fits: what fusion joins, each kind of op beside each other."""

from __future__ import annotations

from collections.abc import Callable

from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.programs.program import Program
from tests.kernels.programs import Writer

Chain = Callable[[DType], Program]

FLOATS = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
MULTIPLIED = (*FLOATS, dtypes.int64)  # products take long to compile
NUMBERS = (*FLOATS, dtypes.uint8, dtypes.int32, dtypes.int64)


def softmax_then_layer_norm(dtype: DType) -> Program:
    """An attention's row, normalised: composites before and behind pointwise ops."""
    w = Writer()
    x, bias = w.input(3, 70, dtype=dtype), w.input(70, dtype=dtype)
    scale, epsilon = w.scalar(dtype), w.scalar(dtype)
    weights = w.softmax(w.add(w.multiply(x, scale), bias), axes=(1,))
    normal = w.layer_norm(w.add(weights, x), epsilon, axes=(1,))
    return w.program(weights, w.tanh(normal))


def sums_of_all_axes(dtype: DType) -> Program:
    """Reductions over each axis and over several, with what comes before and after in one kernel or in two."""
    w = Writer()
    x, y = w.input(5, 33, 4, dtype=dtype), w.input(33, 1, dtype=dtype)
    before = w.subtract(w.multiply(x, y), w.maximum(x, y))
    last = w.sum(before, axes=(2,), keepdims=True)
    first = w.max(before, axes=(0,), keepdims=False)
    both = w.prod(w.minimum(x, y), axes=(0, 2), keepdims=False)
    everything = w.sum(w.square(before), axes=(0, 1, 2), keepdims=False)
    place = w.argmax(w.add(before, last), axes=(1,), keepdims=False)
    return w.program(w.multiply(before, last), first, both, w.sqrt(w.abs(everything)), place)


def long_sums(dtype: DType) -> Program:
    """Rows of more than one chunk of the order of summation, a prologue and an epilogue."""
    w = Writer()
    x, shift = w.input(2, 33_000, dtype=dtype), w.scalar(dtype)
    centred = w.subtract(x, w.mean(x, axes=(1,), keepdims=True))
    total = w.sum(w.multiply(centred, w.add(x, shift)), axes=(1,), keepdims=True)
    return w.program(w.add(total, shift), w.min(centred, axes=(0, 1), keepdims=False))


def rnn_steps(dtype: DType) -> Program:
    """Three steps over a moving window, inlined: one row of a batch, so every product has m = 1."""
    w = Writer()
    xs, h = w.input(9, 17, dtype=dtype), w.input(1, 40, dtype=dtype)
    u, v, b = w.input(17, 40, dtype=dtype), w.input(40, 40, dtype=dtype), w.input(40, dtype=dtype)
    for _ in range(3):
        x = w.slice(xs, (0,), (1,))
        h = w.add(w.add(w.matmul(x, u), w.matmul(h, v)), b)
        h = w.tanh(h) if dtype.is_floating else w.clip(h, b, w.square(b))
    return w.program(h)


def batched_products(dtype: DType) -> Program:
    """Batches that broadcast, a transposed operand, vectors on either side, an inner length of no whole vector."""
    w = Writer()
    a, b = w.input(3, 1, 5, 19, dtype=dtype), w.input(2, 19, 8, dtype=dtype)
    vector, matrix = w.input(19, dtype=dtype), w.input(8, 19, dtype=dtype)
    wide = w.matmul(a, b)
    turned = w.matmul(a, w.transpose(matrix, permutation=(1, 0)))
    left, right = w.matmul(vector, b), w.matmul(matrix, vector)
    inner = w.matmul(vector, w.add(vector, vector))
    return w.program(w.add(wide, turned), w.multiply(left, right), inner)


def training_step(dtype: DType) -> Program:
    """A layer forward, backward and updated: products of transposed values, two weights that could be donated."""
    w = Writer()
    inputs, targets = w.input(40, 12, dtype=dtype), w.input(40, 6, dtype=dtype)
    weights, bias, rate = w.input(12, 6, dtype=dtype), w.input(6, dtype=dtype), w.scalar(dtype)
    batch, wanted = w.slice(inputs, (0,), (16,)), w.slice(targets, (0,), (16,))
    logits = w.add(w.matmul(batch, weights), bias)
    error = w.subtract(w.softmax(logits, axes=(1,)), wanted)
    slope = w.matmul(w.transpose(batch, permutation=(1, 0)), error)
    new_weights = w.subtract(weights, w.multiply(rate, slope))
    new_bias = w.subtract(bias, w.multiply(rate, w.sum(error, axes=(0,), keepdims=False)))
    loss = w.mean(w.logsumexp(logits, axes=(1,), keepdims=False), axes=(0,), keepdims=False)
    return w.program(new_weights, new_bias, loss)


def moves(dtype: DType) -> Program:
    """Views of views, steps backwards, pieces joined, chosen, and written into one another."""
    w = Writer()
    x, y, chosen = w.input(6, 10, dtype=dtype), w.input(4, 10, dtype=dtype), w.input(3, dtype=dtypes.int64)
    back = w.slice(x, (0, 1), (3, 10), steps=(-2, -1))
    joined = w.concat(w.add(back, back), y, w.slice(x, (0,), (2,)), axis=0)
    taken = w.take(joined, chosen, axis=0)
    target = w.transpose(w.reshape(joined, shape=(3, 30)), permutation=(1, 0))
    written = w.op("assign_slice", target, w.reshape(taken, shape=(10, 3)), attributes=((0,), (10,), (3,), ()))
    return w.program(w.multiply(written, written), w.slice(joined, (0,), (1,), dropped=(0,)), taken)


def conversions(dtype: DType) -> Program:
    """Through every dtype and back, with scalars and comparisons on the way."""
    w = Writer()
    x, s = w.input(3, 37, dtype=dtype), w.scalar(dtype)
    values = [w.astype(w.add(x, s), dtype=other.code) for other in dtypes.ALL]
    back = [w.astype(value, dtype=dtype.code) for value in values]
    chosen = w.where(w.less(x, s), back[1], back[2])
    hot = w.one_hot(w.astype(x, dtype=dtypes.int32.code), classes=5, dtype=dtype.code)
    return w.program(*values[2:6], chosen, w.sum(w.add(back[4], back[5]), axes=(0,), keepdims=False), hot)


CHAINS: tuple[tuple[Chain, tuple[DType, ...]], ...] = (
    (softmax_then_layer_norm, FLOATS),
    (sums_of_all_axes, NUMBERS),
    (long_sums, FLOATS),
    (rnn_steps, MULTIPLIED),
    (batched_products, MULTIPLIED),
    (training_step, FLOATS),
    (moves, dtypes.ALL),
    (conversions, NUMBERS),
)
