"""The handwritten digits: 1,797 real images (E. Alpaydin and C. Kaynak, UCI, CC BY 4.0; see digits-LICENSE.txt)."""

from __future__ import annotations

from importlib.resources import files
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

CLASSES = 10
PIXELS = 64
BRIGHTEST = 16
TRAINING_SHARE = 0.8
SPLIT_SEED = 0


class Digits(NamedTuple):
    """Images and the labels of the images, in the same order."""

    images: npt.NDArray[np.float32]  # shape (images, 64), brightness from 0 to 1
    labels: npt.NDArray[np.int64]  # shape (images,), digits from 0 to 9


class Split(NamedTuple):
    """The images, shuffled and divided in two parts."""

    training: Digits
    held_out: Digits


def load() -> Digits:
    """Returns all images, in the order of the published data set."""
    with files(__package__).joinpath("digits.npz").open("rb") as file, np.load(file, allow_pickle=False) as archive:
        images, labels = archive["images"], archive["labels"]
    return Digits(images.astype(np.float32) / np.float32(BRIGHTEST), labels.astype(np.int64))


def split(digits: Digits) -> Split:
    """Divides the images into four fifths for training and one fifth held out. The parts are the same every time."""
    order = np.random.default_rng(SPLIT_SEED).permutation(len(digits.labels))
    training, held_out = np.split(order, [int(len(order) * TRAINING_SHARE)])
    return Split(_chosen(digits, training), _chosen(digits, held_out))


def one_hot(labels: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
    """Returns an array of shape (labels, 10). Each row has a one at the index of its label, and zeros elsewhere."""
    return np.eye(CLASSES, dtype=np.float32)[labels]


def _chosen(digits: Digits, order: npt.NDArray[np.int64]) -> Digits:
    return Digits(digits.images[order], digits.labels[order])
