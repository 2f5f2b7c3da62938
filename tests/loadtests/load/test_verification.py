"""Comparing what sessions read in company and alone."""

from __future__ import annotations

import numpy as np

from loadtests.load.session_runner import digest_of
from loadtests.load.verification import first_difference

_VALUES = [np.arange(8, dtype=np.float32) + number for number in range(5)]


def _digests(values: list[np.ndarray]) -> bytes:
    return b"".join(digest_of(value) for value in values)


def test_equal_values_have_no_difference() -> None:
    assert first_difference(_digests(_VALUES), _digests([value.copy() for value in _VALUES])) is None


def test_a_single_wrong_bit_is_found_at_its_read() -> None:
    wrong = [value.copy() for value in _VALUES]
    wrong[2].view(np.uint32)[5] ^= 1
    assert first_difference(_digests(_VALUES), _digests(wrong)) == 3


def test_a_missing_value_is_a_difference() -> None:
    assert first_difference(_digests(_VALUES), _digests(_VALUES[:4])) == 5


def test_a_value_of_another_shape_or_dtype_has_another_digest() -> None:
    value = _VALUES[0]
    assert len({digest_of(value), digest_of(value.reshape(2, 4)), digest_of(value.view(np.int32))}) == 3
