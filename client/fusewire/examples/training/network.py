"""Defines a network of 64 inputs, 128 hidden units and 10 outputs that reads digits, before and after its training."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fusewire.examples.dataset import CLASSES, PIXELS

HIDDEN = 128
BATCH = 32
START_SEED = 0
SMALLEST_RATE, LARGEST_RATE = 0.02, 0.8  # the first is too small to converge in 20 epochs


class Weights(NamedTuple):
    """The parameters of the network, as float32 arrays of NumPy or of Fusewire."""

    first: Any  # (64, 128)
    first_bias: Any  # (128,)
    second: Any  # (128, 10)
    second_bias: Any  # (10,)


class Trained(NamedTuple):
    """The result of a training."""

    weights: Weights
    losses: list[float]  # mean cross-entropy of each epoch's batches


def learning_rates(count: int) -> tuple[float, ...]:
    """Returns `count` learning rates in geometric progression. If `count` is 1, the rate is the middle of the range."""
    if count == 1:
        return learning_rates(3)[1:2]
    ratio = (LARGEST_RATE / SMALLEST_RATE) ** (1 / (count - 1))
    return tuple(float(f"{SMALLEST_RATE * ratio**index:.2g}") for index in range(count))


def start() -> Weights:
    """Returns the weights before training as NumPy arrays. They are the same every time."""
    random = np.random.default_rng(START_SEED)
    first = random.standard_normal((PIXELS, HIDDEN), dtype=np.float32) / np.float32(PIXELS**0.5)
    second = random.standard_normal((HIDDEN, CLASSES), dtype=np.float32) / np.float32(HIDDEN**0.5)
    return Weights(first, np.zeros(HIDDEN, np.float32), second, np.zeros(CLASSES, np.float32))


def accuracy(xp: Any, weights: Weights, images: Any, labels: Any) -> float:
    """Returns the share of the images that the network classifies correctly.

    `xp` is the module of the arrays, `numpy` or `fusewire`.
    `images` has shape (n, 64). `labels` has shape (n,) and holds integers.
    """
    scores = xp.tanh(images @ weights.first + weights.first_bias) @ weights.second + weights.second_bias
    return int((scores.argmax(axis=1) == labels).sum()) / len(labels)
