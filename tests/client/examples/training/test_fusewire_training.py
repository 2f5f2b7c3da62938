"""The network learns with Fusewire as it does with NumPy, by gradients that nobody has written."""

from collections.abc import Iterator

import numpy as np
import pytest

import fusewire as fw
from fusewire.examples.dataset import load, one_hot, split
from fusewire.examples.training import fusewire_training, numpy_training
from fusewire.examples.training.network import BATCH
from fusewire.testing import session_in_memory

PARTS = split(load())
LABELS = one_hot(PARTS.training.labels)


@pytest.fixture(autouse=True)
def session() -> Iterator[fw.Session]:
    with session_in_memory() as opened:
        yield opened


@pytest.mark.parametrize(
    "images", [3 * BATCH, 2 * BATCH + 9, 9], ids=["whole batches", "a shorter last batch", "no whole batch"]
)
def test_a_training_is_numpys(images: int) -> None:
    x, y = PARTS.training.images[:images], LABELS[:images]
    ended_epochs: list[None] = []
    expected = numpy_training.train(x, y, learning_rate=0.5, epochs=3, after_epoch=lambda: None)
    found = fusewire_training.train(
        fw.asarray(x), fw.asarray(y), learning_rate=0.5, epochs=3, after_epoch=lambda: ended_epochs.append(None)
    )
    assert len(ended_epochs) == 3
    np.testing.assert_allclose(found.losses, expected.losses, rtol=1e-5)
    for weights, others in zip(found.weights, expected.weights, strict=True):
        np.testing.assert_allclose(weights.numpy(), others, atol=1e-5)
        assert weights.numpy().dtype == others.dtype
