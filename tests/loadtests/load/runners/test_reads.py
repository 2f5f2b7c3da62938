"""Keeping what a session reads."""

from __future__ import annotations

import numpy as np

from loadtests.load.runners.reads import Reads, digest_of

_VALUE = np.arange(8, dtype=np.float32)


def test_values_are_kept_while_there_is_room_and_digests_after_that() -> None:
    reads = Reads(room_bytes=2 * _VALUE.nbytes)
    for value in (_VALUE, None, _VALUE + 1, _VALUE + 2):
        reads.add(value)
    first, nothing, second, third = reads.kept
    assert first is _VALUE
    assert nothing is None
    assert isinstance(second, np.ndarray)
    assert third == digest_of(_VALUE + 2)


def test_a_value_of_another_bit_shape_or_dtype_has_another_digest() -> None:
    flipped = _VALUE.copy()
    flipped.view(np.uint32)[5] ^= 1
    values = [_VALUE, flipped, _VALUE.reshape(2, 4), _VALUE.view(np.int32)]
    assert len({digest_of(value) for value in values}) == 4
