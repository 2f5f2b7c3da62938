"""Trains the network with Fusewire, which makes the gradients; an epoch is a loop that is recorded once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fusewire as fw
from fusewire.examples.training.network import BATCH, Trained, Weights, start


def train(
    images: fw.Array, labels: fw.Array, *, learning_rate: float, epochs: int, after_epoch: Callable[[], None]
) -> Trained:
    """Trains by mini-batch gradient descent on the cross-entropy of a softmax, from the weights of `start()`.

    `images` has shape (n, 64). `labels` has shape (n, 10) and holds zeros and ones. Both are float32. The losses are
    read only at the end, because each read waits for its value. `after_epoch` is called after the ops of each epoch are
    recorded.
    """
    whole_batches = len(images) // BATCH
    seen = whole_batches * BATCH

    def body(i: fw.Array, carry: Any) -> Any:
        weights, loss = carry
        batch = slice(i * BATCH, (i + 1) * BATCH)
        return _step(weights, loss, images[batch], labels[batch], learning_rate)

    session = images.session
    weights = Weights(*map(session.array, start()))
    losses = []
    for _ in range(epochs):
        weights, loss = fw.fori_loop(whole_batches, body, (weights, session.array(np.float32(0))))
        if seen < len(images):
            weights, loss = _step(weights, loss, images[seen:], labels[seen:], learning_rate)
        losses.append(loss / len(images))
        after_epoch()
    return Trained(weights, [float(loss) for loss in losses])


def _step(weights: Weights, loss: fw.Array, x: fw.Array, y: fw.Array, learning_rate: float) -> tuple[Weights, fw.Array]:
    """Returns the weights after one batch, and the loss with that of the batch added."""
    of_batch, slopes = fw.value_and_grad(_loss)(weights, x, y)
    rate = learning_rate / len(x)  # the gradient is that of a sum, and a step goes down the mean
    return Weights(*[weight - rate * slope for weight, slope in zip(weights, slopes, strict=True)]), loss + of_batch


def _loss(weights: Weights, x: fw.Array, y: fw.Array) -> fw.Array:
    """Returns the sum of the cross-entropies of a batch."""
    hidden = fw.tanh(x @ weights.first + weights.first_bias)
    scores = hidden @ weights.second + weights.second_bias
    scores = scores - scores.max(axis=1, keepdims=True)
    loss: fw.Array = (fw.log(fw.exp(scores).sum(axis=1)) - (y * scores).sum(axis=1)).sum()
    return loss
