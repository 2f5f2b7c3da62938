"""Trains the network with NumPy, by gradients written by hand: the peer of the training with Fusewire."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from fusewire.examples.training.network import BATCH, Trained, Weights, start

_Floats = npt.NDArray[np.float32]


def train(
    images: _Floats, labels: _Floats, *, learning_rate: float, epochs: int, after_epoch: Callable[[], None]
) -> Trained:
    """Trains as `fusewire.examples.training.fusewire_training.train` does."""
    w1, b1, w2, b2 = start()
    losses = []
    for _ in range(epochs):
        loss = np.float32(0)
        for i in range(0, len(images), BATCH):
            x, y = images[i : i + BATCH], labels[i : i + BATCH]

            hidden = np.tanh(x @ w1 + b1)
            scores = hidden @ w2 + b2
            scores = scores - scores.max(axis=1, keepdims=True)
            exponentials = np.exp(scores)
            totals = exponentials.sum(axis=1, keepdims=True)
            loss = loss + (np.log(totals) - (y * scores).sum(axis=1, keepdims=True)).sum()

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
