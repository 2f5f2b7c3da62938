"""Trains a network of 64 inputs, 128 hidden units and 10 outputs to read digits, in ordinary array code.

The same code runs on NumPy and on Fusewire: the argument `xp` is the array module, `numpy` or `fusewire`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fusewire.examples.dataset import CLASSES, PIXELS

HIDDEN = 128
BATCH = 32
START_SEED = 0
SMALLEST_RATE, LARGEST_RATE = 0.02, 0.8  # the first is too small to converge in 20 epochs


class Weights(NamedTuple):
    """The parameters of the network, as float32 arrays of `xp`."""

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


def train(
    xp: Any,
    images: Any,
    labels: Any,
    *,
    learning_rate: float,
    epochs: int,
    after_epoch: Callable[[], None],
) -> Trained:
    """Trains by mini-batch gradient descent on the cross-entropy of a softmax, from the weights of `start()`.

    `images` has shape (n, 64). `labels` has shape (n, 10) and holds zeros and ones. Both are float32 arrays of `xp`.
    The losses are read only at the end, because each read waits for its value. `after_epoch` is called after the ops
    of each epoch are recorded.
    """
    w1, b1, w2, b2 = (xp.asarray(weight) for weight in start())
    losses = []
    for _ in range(epochs):
        loss = xp.zeros((), dtype=xp.float32)
        for i in range(0, len(images), BATCH):
            x, y = images[i : i + BATCH], labels[i : i + BATCH]

            hidden = xp.tanh(x @ w1 + b1)
            scores = hidden @ w2 + b2
            scores = scores - scores.max(axis=1, keepdims=True)
            exponentials = xp.exp(scores)
            totals = exponentials.sum(axis=1, keepdims=True)
            loss = loss + (xp.log(totals) - (y * scores).sum(axis=1, keepdims=True)).sum()

            # The gradients of the batch's mean loss, from the last layer to the first.
            d_scores = (exponentials / totals - y) / len(x)
            d_hidden = (d_scores @ w2.T) * (1 - hidden * hidden)
            w2 = w2 - learning_rate * (hidden.T @ d_scores)
            b2 = b2 - learning_rate * d_scores.sum(axis=0)
            w1 = w1 - learning_rate * (x.T @ d_hidden)
            b1 = b1 - learning_rate * d_hidden.sum(axis=0)
        losses.append(loss / len(images))
        after_epoch()
    return Trained(Weights(w1, b1, w2, b2), [float(loss) for loss in losses])


def accuracy(xp: Any, weights: Weights, images: Any, labels: Any) -> float:
    """Returns the share of the images that the network classifies correctly.

    `images` has shape (n, 64). `labels` has shape (n,) and holds integers.
    """
    scores = xp.tanh(images @ weights.first + weights.first_bias) @ weights.second + weights.second_bias
    return int((scores.argmax(axis=1) == labels).sum()) / len(labels)
