"""Network cells, each the body of a loop on its own result, whose time on a device is measured.

A cell can be pickled, and draws the same operands in every process. NumPy, torch and Fusewire run its loop unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np

from loadtests.workloads.loops import Floats, Functions, Loop

BLOCK_LAYERS = 4
PARTS = 16
PRODUCTS = 8
_READ_ROWS = 8


class Operands(tuple[Any, ...]):
    """The state of a cell, and then its other operands. It is made from them one by one, as a named tuple is."""

    __slots__ = ()

    def __new__(cls, *operands: Any) -> Self:
        return super().__new__(cls, operands)


class Mlp(NamedTuple):
    """Layers of a product, a bias and a ReLU, on a state of (batch, hidden) float32."""

    layers: int
    hidden: int
    batch: int

    @property
    def name(self) -> str:
        return f"L{self.layers} H{self.hidden} B{self.batch}"

    def loop(self) -> Loop:
        layers = _layers(self.hidden)[: 2 * self.layers]
        return Loop(Operands(_state(self.batch, self.hidden), *layers), _run_mlp, first_rows)


class Split(NamedTuple):
    """Sixteen parts of (rows, width) float32, each normalised by itself; then joined, and a layer."""

    rows: int
    width: int

    @property
    def name(self) -> str:
        return f"{PARTS} × [{self.rows}, {self.width}]"

    def loop(self) -> Loop:
        return Loop(Operands(_state(PARTS * self.rows, self.width), *_layers(self.width)[:2]), _run_split, first_rows)


class Blocks(NamedTuple):
    """Independent networks of four layers on one input of (batch, hidden) float32. The next input is the first result.

    The state holds the results of all blocks, so that each of them is computed.
    """

    blocks: int
    batch: int
    hidden: int

    @property
    def name(self) -> str:
        return f"{self.blocks} blocks B{self.batch} H{self.hidden}"

    def loop(self) -> Loop:
        layers = [each for block in range(self.blocks) for each in _layers(self.hidden, block)[: 2 * BLOCK_LAYERS]]
        state = (_state(self.batch, self.hidden),) * self.blocks
        return Loop(Operands(state, *layers), _run_blocks, first_rows_of_first)


class Norm(NamedTuple):
    """Layer norm and tanh of (rows, width) float32."""

    rows: int
    width: int

    @property
    def name(self) -> str:
        return f"[{self.rows}, {self.width}]"

    def loop(self) -> Loop:
        return Loop(Operands(_state(self.rows, self.width)), _run_norm, first_rows)


class Product(NamedTuple):
    """Eight products in turn: of a state of (rows, depth) and a (depth, width) matrix, and back to the first shape.

    The matrices lie transposed in memory if `is_transposed`.
    """

    rows: int
    depth: int
    width: int
    is_transposed: bool = False

    @property
    def name(self) -> str:
        return f"{self.rows}×{self.depth}×{self.width}{' transposed' * self.is_transposed}"

    def loop(self) -> Loop:
        there = _rotation(self.depth, self.width, seed=1)
        back = np.ascontiguousarray(_rotation(self.depth, self.width, seed=2).T)
        state = _state(self.rows, self.depth)
        if self.is_transposed:
            there, back = np.ascontiguousarray(there.T), np.ascontiguousarray(back.T)
            return Loop(Operands(state, there, back), _run_transposed_products, first_rows)
        return Loop(Operands(state, there, back), _run_products, first_rows)


class Conv2d(NamedTuple):
    """A convolution of (batch, channels, side, side) float32 by as many kernels of 3 × 3, a bias and a ReLU."""

    batch: int
    channels: int
    side: int

    @property
    def name(self) -> str:
        return f"[{self.batch}, {self.channels}, {self.side}, {self.side}] by {self.channels} of 3 × 3"

    def loop(self) -> Loop:
        random = np.random.default_rng(self.channels)
        state = random.standard_normal((self.batch, self.channels, self.side, self.side), np.float32)
        scale = np.float32(np.sqrt(1.5 / (9 * self.channels)))
        kernels = random.standard_normal((self.channels, self.channels, 3, 3), np.float32) * scale
        bias = random.standard_normal((self.channels, 1, 1), np.float32)
        return Loop(Operands(state, kernels, bias), _run_conv2d, first_rows)


Cell = Conv2d | Mlp | Split | Blocks | Norm | Product


def first_rows(state: Any) -> Any:
    return state[:_READ_ROWS]


def first_rows_of_first(state: Any) -> Any:
    return state[0][:_READ_ROWS]


def _state(rows: int, width: int) -> Floats:
    return np.random.default_rng(1).standard_normal((rows, width), np.float32)


@lru_cache(maxsize=8)
def _layers(hidden: int, block: int = 0) -> Sequence[Floats]:
    """Returns weights and biases of eight layers in turn. The state of their loop neither vanishes nor grows."""
    random = np.random.default_rng((hidden, block))
    scale = np.float32(np.sqrt(1.5 / hidden))
    drawn: list[Floats] = []
    for _ in range(8):
        drawn += (
            random.standard_normal((hidden, hidden), np.float32) * scale,
            random.standard_normal(hidden, np.float32),
        )
    return drawn


def _rotation(depth: int, width: int, *, seed: int) -> Floats:
    """Returns the first rows of a dense reflection of `width` dimensions, so that products neither vanish nor grow."""
    axis = np.random.default_rng(seed).standard_normal(width)
    axis /= np.linalg.norm(axis)
    reflection: Floats = (np.eye(depth, width) - 2 * np.outer(axis[:depth], axis)).astype(np.float32)
    return reflection


def _run_products(operands: Operands, steps: Iterable[object], _functions: Functions) -> Any:
    x, there, back = operands
    for _ in steps:
        for _ in range(PRODUCTS // 2):
            x = x @ there @ back
    return x


def _run_transposed_products(operands: Operands, steps: Iterable[object], _functions: Functions) -> Any:
    x, there, back = operands
    for _ in steps:
        for _ in range(PRODUCTS // 2):
            x = x @ there.T @ back.T
    return x


def _run_mlp(operands: Operands, steps: Iterable[object], functions: Functions) -> Any:
    x, *layers = operands
    for _ in steps:
        x = _apply(layers, x, functions)
    return x


def _run_conv2d(operands: Operands, steps: Iterable[object], functions: Functions) -> Any:
    x, kernels, bias = operands
    for _ in steps:
        x = functions.relu(functions.conv(x, kernels) + bias)
    return x


def _run_split(operands: Operands, steps: Iterable[object], functions: Functions) -> Any:
    x, *layer = operands
    for _ in steps:
        rows = x.shape[0] // PARTS
        parts = [x[part * rows : (part + 1) * rows] for part in range(PARTS)]
        joined = functions.concat([functions.tanh(_normalised(part, functions)) for part in parts])
        x = _apply(layer, joined, functions)
    return x


def _run_blocks(operands: Operands, steps: Iterable[object], functions: Functions) -> Any:
    state, *layers = operands
    size = len(layers) // len(state)
    for _ in steps:
        blocks = [layers[first : first + size] for first in range(0, len(layers), size)]
        state = tuple([_apply(block, state[0], functions) for block in blocks])
    return state


def _run_norm(operands: Operands, steps: Iterable[object], functions: Functions) -> Any:
    (x,) = operands
    for _ in steps:
        x = functions.tanh(_normalised(x, functions))
    return x


def _apply(layers: Sequence[Any], x: Any, functions: Functions) -> Any:
    for weights, bias in zip(layers[::2], layers[1::2], strict=True):
        x = functions.relu(x @ weights + bias)
    return x


def _normalised(x: Any, functions: Functions) -> Any:
    """Returns x with mean 0 and variance 1 in each row."""
    centred = x - x.mean(axis=1, keepdims=True)
    variance = (centred * centred).mean(axis=1, keepdims=True)
    return centred / functions.sqrt(variance + 1e-5)
