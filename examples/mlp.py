"""Trains a network with one hidden layer on two spirals. `value_and_grad` finds the gradients."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import fusewire as fw

HIDDEN, RATE = 32, 1.0


class Weights(NamedTuple):
    """Parameters (2, hidden), (hidden,), (hidden,) and ()."""

    first: Any
    bias: Any
    second: Any
    offset: Any


def spirals(each: int, seed: int = 0) -> tuple[Any, Any]:
    """Returns points (2 · each, 2) of two spirals, and ±1 for the spiral of each, as NumPy arrays of float64."""
    random = np.random.default_rng(seed)
    angle = np.linspace(0.5, 2 * np.pi, each)
    one = np.stack([angle * np.cos(angle), angle * np.sin(angle)], axis=1) / 4
    points = np.concatenate([one, -one]) + 0.03 * random.standard_normal((2 * each, 2))
    return points, np.repeat([1.0, -1.0], each)


def start(seed: int = 0) -> Weights:
    """Returns the weights before training, as NumPy arrays of float64."""
    random = np.random.default_rng(seed)
    first, second = random.standard_normal((2, HIDDEN)), random.standard_normal(HIDDEN) / HIDDEN**0.5
    return Weights(first, np.zeros(HIDDEN), second, np.zeros(()))


def loss(weights: Weights, points: Any, signs: Any) -> Any:
    """Returns the mean logistic loss."""
    hidden = fw.tanh(points @ weights.first + weights.bias)
    return fw.softplus(-signs * (hidden @ weights.second + weights.offset)).mean()


def trained(weights: Weights, points: Any, signs: Any, steps: int) -> tuple[Weights, list[Any]]:
    """Returns the weights after steps of gradient descent, and the loss before each."""

    @fw.function
    def step(weights: Weights, points: Any, signs: Any) -> tuple[Weights, Any]:
        value, slope = fw.value_and_grad(loss)(weights, points, signs)
        return Weights(*[each - RATE * down for each, down in zip(weights, slope, strict=True)]), value

    losses = []
    for _ in range(steps):
        weights, value = step(weights, points, signs)
        losses.append(value)
    return weights, losses


if __name__ == "__main__":
    with fw.connect():
        points, signs = map(fw.asarray, spirals(200))
        _, losses = trained(Weights(*map(fw.asarray, start())), points, signs, 2000)
        print("loss:", *[f"{float(losses[index]):.4f}" for index in (0, 500, 1000, 1999)])
