"""The digits are the published ones, whole, and split without overlap."""

import hashlib
from importlib.resources import files

import numpy as np

from fusewire.examples.dataset import load, one_hot, split

# Of the test set as published: 64 pixels an image, row by row, and one label each, as bytes.
IMAGES_SHA256 = "8f26b2bd9d135c256808f68f14fdabddde6d9c7f869ae419704b051f0f14b3b3"
LABELS_SHA256 = "8ba4f891220f5e4c9c819638d1602d74b83618f167043c6da52a2a247841ddf0"
IMAGES_OF_EACH_DIGIT = [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_the_images_are_the_published_ones() -> None:
    pixels = (load().images * 16).astype(np.uint8)
    assert pixels.shape == (1797, 64)
    assert hashlib.sha256(pixels.tobytes()).hexdigest() == IMAGES_SHA256


def test_the_labels_are_the_published_ones() -> None:
    labels = load().labels
    assert np.bincount(labels).tolist() == IMAGES_OF_EACH_DIGIT
    assert hashlib.sha256(labels.astype(np.uint8).tobytes()).hexdigest() == LABELS_SHA256


def test_pixels_are_float32_between_zero_and_one() -> None:
    images = load().images
    assert images.dtype == np.float32
    assert (images.min(), images.max()) == (0.0, 1.0)


def test_the_data_are_small_and_carry_their_licence() -> None:
    folder = files("fusewire.examples")
    assert len(folder.joinpath("digits.npz").read_bytes()) < 100_000
    licence = folder.joinpath("digits-LICENSE.txt").read_text(encoding="utf-8")
    assert all(word in licence for word in ("Alpaydin", "Kaynak", "UCI", "CC BY 4.0"))


def test_a_fifth_is_held_out_and_no_image_is_in_both_parts() -> None:
    digits = load()
    training, held_out = split(digits)
    assert (len(training.labels), len(held_out.labels)) == (1437, 360)
    together = np.concatenate((training.images, held_out.images))
    assert sorted(map(bytes, together)) == sorted(map(bytes, digits.images))


def test_the_split_is_the_same_every_time() -> None:
    first, second = split(load()), split(load())
    np.testing.assert_array_equal(first.held_out.images, second.held_out.images)
    np.testing.assert_array_equal(first.training.labels, second.training.labels)


def test_images_keep_their_labels_when_they_are_shuffled() -> None:
    digits = load()
    label_of = dict(zip(map(bytes, digits.images), digits.labels, strict=True))
    for part in split(digits):
        assert all(label_of[bytes(image)] == label for image, label in zip(part.images, part.labels, strict=True))


def test_one_hot_sets_the_column_that_the_label_names() -> None:
    assert one_hot(np.array([2, 0])).tolist() == [[0, 0, 1, *[0] * 7], [1, *[0] * 9]]
