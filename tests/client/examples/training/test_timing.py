"""One training is timed, and tells what it learned."""

import numpy as np

from fusewire.examples.training.timing import train_once


def test_a_training_tells_its_rate_accuracy_losses_and_time() -> None:
    epochs: list[None] = []
    run = train_once(np, 0.2, 5, lambda: epochs.append(None))
    assert run.learning_rate == 0.2
    assert len(run.losses) == len(epochs) == 5
    assert 0.9 < run.accuracy < 1
    assert run.duration_s > 0
