"""The recurrent loop and the pointwise loop: array code that NumPy, torch and Fusewire run unchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from loadtests.measuring.errors import WrongResult

Floats = npt.NDArray[np.float32]
Function = Callable[[Any], Any]

RNN_OPS = 6  # in one step
CHAIN_OPS = 5  # in one step
DAMPED_OPS = 3  # in one step


class Rnn(NamedTuple):
    """The operands of the recurrent loop, as arrays of the library that runs it."""

    state: Any  # (batch, hidden) float32
    weights: Any  # (hidden, hidden) float32
    bias: Any  # (hidden,) float32
    scale: Any  # (hidden,) float32
    residual: Any  # (batch, hidden) float32


class Chain(NamedTuple):
    """The operands of the pointwise loop, all (elements,) float32."""

    x: Any
    b: Any
    z: Any


class Damped(NamedTuple):
    """The operands of the pointwise loop of three ops, both (elements,) float32."""

    x: Any
    d: Any


class Functions(NamedTuple):
    """The functions of a library that the loops need."""

    sigmoid: Function
    tanh: Function
    relu: Function
    sqrt: Function
    concat: Callable[[Sequence[Any]], Any]  # along the first axis
    conv: Callable[[Any, Any], Any]  # of images by kernels of 3 × 3, with zeros around the images


def numpy_sigmoid(x: Any) -> Any:
    """Returns the sigmoid of each element. float32 stays float32."""
    return 1 / (1 + np.exp(-x))


def numpy_relu(x: Any) -> Any:
    return np.maximum(x, 0)


def numpy_conv(x: Any, w: Any) -> Any:
    """Returns the convolution of images [batch, channels, rows, columns] by kernels [outputs, channels, 3, 3]."""
    around = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(around, (3, 3), (2, 3))
    return np.tensordot(windows, w, ((1, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2)


NUMPY = Functions(numpy_sigmoid, np.tanh, numpy_relu, np.sqrt, np.concatenate, numpy_conv)


def whole(state: Any) -> Any:
    return state


def first_element(state: Any) -> Any:
    return state[0]


class Loop(NamedTuple):
    """A loop that any library can run. It can be pickled, so that other processes can run it."""

    operands: Any  # a named tuple of NumPy arrays; each step replaces the first of them, the state
    run: Callable[[Any, Iterable[object], Functions], Any]  # (operands, one item for each step, functions) → last state
    read: Function = whole  # selects the part of the last state that is waited for


def draw_rnn(batch: int, hidden: int, seed: int) -> Rnn:
    """Returns random operands with which the state changes in every step, and neither settles nor grows without bound.

    The weights are orthogonal, and the scale makes the slope of the sigmoid 1 at most. So a result tells how many steps
    were done, and rounding errors do not grow from step to step.
    """
    random = np.random.default_rng(seed)

    def draw(*shape: int) -> Floats:
        return random.standard_normal(shape, np.float32)

    return Rnn(
        state=draw(batch, hidden),
        weights=np.linalg.qr(draw(hidden, hidden))[0],
        bias=draw(hidden) / 100,
        scale=np.full(hidden, 4, np.float32),
        residual=np.full((batch, hidden), -0.5, np.float32),
    )


def draw_chain(elements: int, seed: int) -> Chain:
    random = np.random.default_rng(seed)
    return Chain(*(random.standard_normal(elements, np.float32) for _ in range(3)))


def draw_damped(elements: int, seed: int) -> Damped:
    random = np.random.default_rng(seed)
    return Damped(*(random.standard_normal(elements, np.float32) for _ in range(2)))


def run_rnn(rnn: Rnn, steps: Iterable[object], functions: Functions) -> Any:
    """Runs the recurrent loop, once for each of `steps`; returns the last state."""
    sigmoid = functions.sigmoid
    h, weights, bias, scale, residual = rnn
    for _ in steps:
        z = h @ weights
        z = z + bias
        z = z * scale
        z = -z
        z = sigmoid(z)
        h = z + residual
    return h


def run_chain(chain: Chain, steps: Iterable[object], functions: Functions) -> Any:
    """Runs five pointwise ops a step, each step on the result of the step before. Returns the last result."""
    sigmoid, tanh, relu = functions.sigmoid, functions.tanh, functions.relu
    x, b, z = chain
    for _ in steps:
        x = relu(tanh(sigmoid((x + b) * z)))
    return x


def run_damped(damped: Damped, steps: Iterable[object], functions: Functions) -> Any:
    """Runs three pointwise ops a step, each step on the result of the step before. Returns the last result."""
    x, d = damped
    for _ in steps:
        x = functions.tanh(x * 0.9 + d)
    return x


def result_in_numpy(loop: Loop, steps: int) -> Floats:
    """Returns the state after `steps` steps."""
    state: Floats = loop.run(loop.operands, range(steps), NUMPY)
    return state


def check_close(actual: Floats, expected: Floats, what: str, tolerance: float = 2e-4) -> None:
    """Raises WrongResult unless two float32 results of different libraries are close.

    They may differ by `tolerance` of their size, and by a tenth of it beside that.
    """
    try:
        np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance / 10, equal_nan=False)
    except AssertionError as difference:
        raise WrongResult(f"{what}: {difference}") from None
