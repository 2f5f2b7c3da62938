"""A 64–128–10 network that learns to read digits: ordinary array code, the same for NumPy and for Fusewire.

`xp` is the array module, `numpy` or `fusewire`. The code is the same for both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fusewire.examples.dataset import CLASSES, PIXELS

HIDDEN = 128
BATCH = 32
START_SEED = 0
SMALLEST_RATE, LARGEST_RATE = 0.02, 0.8  # too small to converge in 20 epochs; the largest that converges


class Weights(NamedTuple):
    """The parameters, float32, arrays of `xp`."""

    first: Any  # (64, 128)
    first_bias: Any  # (128,)
    second: Any  # (128, 10)
    second_bias: Any  # (10,)


class Trained(NamedTuple):
    """The result of a training."""

    weights: Weights
    losses: list[float]  # mean cross-entropy of each epoch's batches


def learning_rates(count: int) -> tuple[float, ...]:
    """`count` learning rates in geometric progression; a single one is from the middle of the range."""
    if count == 1:
        return learning_rates(3)[1:2]
    ratio = (LARGEST_RATE / SMALLEST_RATE) ** (1 / (count - 1))
    return tuple(float(f"{SMALLEST_RATE * ratio**index:.2g}") for index in range(count))


def start() -> Weights:
    """The weights before training, in NumPy: the same every time."""
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
    """Mini-batch gradient descent on the cross-entropy of a softmax, from `start()`.

    `images` are (n, 64), `labels` (n, 10) of zeros and ones, both float32 arrays of `xp`. The losses are read at the
    end only, as each read waits for its value. `after_epoch` is called once the ops of an epoch are recorded.
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
    """The share of `images`, (n, 64), that the network classifies as `labels`, (n,) of integers."""
    scores = xp.tanh(images @ weights.first + weights.first_bias) @ weights.second + weights.second_bias
    return int((scores.argmax(axis=1) == labels).sum()) / len(labels)
