"""The network's accuracy, and the learning rates of its trainings."""

import numpy as np
import pytest

from fusewire.examples.dataset import load, one_hot, split
from fusewire.examples.training.network import accuracy, learning_rates
from fusewire.examples.training.numpy_training import train

PARTS = split(load())


def test_accuracy_is_the_share_of_right_answers() -> None:
    held_out = PARTS.held_out
    images, labels = PARTS.training.images, one_hot(PARTS.training.labels)
    weights = train(images, labels, learning_rate=0.1, epochs=2, after_epoch=lambda: None).weights
    right = round(accuracy(np, weights, *held_out) * 360)
    wrong_labels = (held_out.labels + 1) % 10
    assert 0 < right < 360
    assert accuracy(np, weights, held_out.images, wrong_labels) <= 1 - right / 360


@pytest.mark.parametrize("count", [1, 2, 8, 30])
def test_there_are_as_many_learning_rates_as_asked_for_and_they_differ(count: int) -> None:
    rates = learning_rates(count)
    assert len(set(rates)) == count
    assert all(0.02 <= rate <= 0.8 for rate in rates)
