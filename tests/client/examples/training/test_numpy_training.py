"""The network learns, in NumPy; and the gradients written by hand are those of its loss."""

from typing import Any

import numpy as np
import pytest

from fusewire.examples.dataset import load, one_hot, split
from fusewire.examples.training.network import BATCH, Trained, accuracy, learning_rates, start
from fusewire.examples.training.numpy_training import train

PARTS = split(load())
LABELS = one_hot(PARTS.training.labels)


def trained(learning_rate: float, epochs: int, *, images: int | None = None) -> Trained:
    return train(
        PARTS.training.images[:images],
        LABELS[:images],
        learning_rate=learning_rate,
        epochs=epochs,
        after_epoch=lambda: None,
    )


def loss_in_float64(weights: Any, images: Any, labels: Any) -> float:
    first, first_bias, second, second_bias = weights
    scores = np.tanh(images @ first + first_bias) @ second + second_bias
    log_totals = np.log(np.exp(scores).sum(axis=1))
    return float((log_totals - (labels * scores).sum(axis=1)).mean())


@pytest.mark.parametrize("learning_rate", [0.1, 0.8])
def test_twenty_epochs_read_95_of_100_held_out_images(learning_rate: float) -> None:
    weights = trained(learning_rate, 20).weights
    assert accuracy(np, weights, *PARTS.held_out) >= 0.95


def test_seven_of_the_eight_learning_rates_are_good() -> None:
    shares = [accuracy(np, trained(rate, 20).weights, *PARTS.held_out) for rate in learning_rates(8)]
    assert sum(share >= 0.95 for share in shares) == 7


def test_training_stays_in_float32() -> None:
    assert {weight.dtype for weight in trained(0.1, 1).weights} == {np.dtype(np.float32)}


def test_there_is_a_loss_for_each_epoch_and_it_falls() -> None:
    losses = trained(0.1, 4).losses
    assert len(losses) == 4
    assert losses == sorted(losses, reverse=True)


def test_the_epochs_end_is_told_once_each() -> None:
    ended_epochs: list[None] = []
    train(PARTS.training.images, LABELS, learning_rate=0.1, epochs=3, after_epoch=lambda: ended_epochs.append(None))
    assert len(ended_epochs) == 3


@pytest.mark.parametrize("images", [BATCH, 20], ids=["a whole batch", "a shorter last batch"])
@pytest.mark.parametrize("which", range(4), ids=["first", "first bias", "second", "second bias"])
def test_a_step_goes_down_the_gradient_of_the_mean_loss(which: int, images: int) -> None:
    x = PARTS.training.images[:images].astype(np.float64)
    y = LABELS[:images].astype(np.float64)
    before = [weight.astype(np.float64) for weight in start()]
    stepped = trained(1.0, 1, images=images).weights
    downhill = stepped[which].astype(np.float64) - before[which]

    direction = np.random.default_rng(3).standard_normal(before[which].shape)
    moved = [[*before[:which], before[which] + sign * 1e-5 * direction, *before[which + 1 :]] for sign in (1, -1)]
    slope = (loss_in_float64(moved[0], x, y) - loss_in_float64(moved[1], x, y)) / 2e-5
    assert -(downhill * direction).sum() == pytest.approx(slope, rel=1e-3, abs=1e-6)
