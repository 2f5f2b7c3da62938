"""Runs and times one training on the digits, with NumPy or with Fusewire."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from fusewire.examples import dataset
from fusewire.examples.figures import TrainingRun
from fusewire.examples.training import fusewire_training, numpy_training
from fusewire.examples.training.network import accuracy


def train_once(xp: Any, learning_rate: float, epochs: int, after_epoch: Callable[[], None]) -> TrainingRun:
    """Trains on four fifths of the images and tests on the rest. `xp` is the module `numpy` or `fusewire`."""
    parts = dataset.split(dataset.load())
    one_hot = dataset.one_hot(parts.training.labels)
    started_at_ns = time.perf_counter_ns()
    images, labels, *held_out = map(xp.asarray, (parts.training.images, one_hot, *parts.held_out))
    train = numpy_training.train if xp is np else fusewire_training.train
    trained = train(images, labels, learning_rate=learning_rate, epochs=epochs, after_epoch=after_epoch)
    share = accuracy(xp, trained.weights, *held_out)
    duration_s = (time.perf_counter_ns() - started_at_ns) / 1e9
    return TrainingRun(learning_rate, share, tuple(trained.losses), duration_s)
