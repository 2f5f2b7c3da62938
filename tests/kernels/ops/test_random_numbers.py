"""Random bits are Philox's, and the numbers that they stand for are quantiles of their distributions."""

from __future__ import annotations

from math import log, log1p
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire_kernels.ops.random_numbers import exponential_of_bits, normal_of_bits, random_bits

Array = npt.NDArray[Any]

ALL_ONES = 2**64 - 1
# The known answers of Philox4x32-10: the counter's words, the key's words, and the four words of the result.
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    (
        (0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF),
        (0xFFFFFFFF, 0xFFFFFFFF),
        (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
    ),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


def philox(counter: tuple[int, ...], key: tuple[int, ...]) -> tuple[int, ...]:
    """Philox4x32-10 of Python's integers, as the paper writes it."""
    (c0, c1, c2, c3), (k0, k1) = counter, key
    for _ in range(10):
        first, second = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0, c1, c2, c3 = second >> 32 ^ c1 ^ k0, second % 2**32, first >> 32 ^ c3 ^ k1, first % 2**32
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    return c0, c1, c2, c3


def joined(low: int, high: int) -> np.uint64:
    return np.uint64(low + (high << 32))


def drawn(counter: tuple[int, ...], key: tuple[int, ...], count: int = 1) -> Array:
    start, stream = joined(*counter[:2]), joined(*counter[2:])
    return np.asarray(random_bits(np, start, stream, joined(*key), (count,)))


@pytest.mark.parametrize(("counter", "key", "words"), KNOWN)
def test_bits_are_the_known_answers(counter: Any, key: Any, words: Any) -> None:
    assert philox(counter, key) == words
    assert drawn(counter, key).tolist() == [joined(*words[:2])]


@given(counter=st.tuples(*[st.integers(0, 2**32 - 1)] * 4), key=st.tuples(*[st.integers(0, 2**32 - 1)] * 2))
def test_bits_are_the_first_two_words_at_any_counter(counter: Any, key: Any) -> None:
    first = joined(*counter[:2])
    lower = [(int(first) + i) % 2**64 for i in range(3)]
    words = [philox((each % 2**32, each >> 32, *counter[2:]), key) for each in lower]
    assert drawn(counter, key, 3).tolist() == [joined(*each[:2]) for each in words]


def test_elements_count_in_row_major_order() -> None:
    start, stream, key = np.uint64(ALL_ONES - 2), np.uint64(1), np.uint64(5)
    flat = random_bits(np, start, stream, key, (12,))
    assert random_bits(np, start, stream, key, (2, 3, 2)).tolist() == flat.reshape(2, 3, 2).tolist()
    assert random_bits(np, start, stream, key, ()).tolist() == flat[0]


EDGES = [0, 1, 2**11, 2**12, 2**62, 2**63 - 1, 2**63, 2**63 + 4096, ALL_ONES - 2**12, ALL_ONES]


def some_bits() -> Array:
    """Bits at the edges, of every magnitude from both ends, and in between."""
    ends = [2**power + offset for power in range(64) for offset in (-1, 0, 1)]
    edges = np.array([*EDGES, *ends, *[ALL_ONES - each for each in ends]], np.uint64)
    return np.concatenate([edges, np.random.default_rng(0).integers(0, 2**64, 20_000, np.uint64)])


def test_normal_numbers_are_quantiles_of_the_middles_of_2_to_the_52_parts() -> None:
    bits = some_bits()
    numbers = normal_of_bits(np, bits)
    halves = np.minimum(bits >> 12, 2**52 - 1 - (bits >> 12)).astype(np.float64)
    expected = np.array([NormalDist().inv_cdf((each + 0.5) / 2**52) for each in halves.tolist()])
    expected = np.where(bits >= 2**63, -expected, expected)
    np.testing.assert_allclose(numbers, expected, rtol=1e-10)
    np.testing.assert_array_equal(normal_of_bits(np, ~bits), -numbers)


def test_normal_numbers_grow_with_their_bits() -> None:
    bits = np.sort(some_bits())
    numbers = normal_of_bits(np, bits)
    assert (np.diff(numbers) >= -1e-15 * np.abs(numbers[1:])).all()
    assert numbers[0] == pytest.approx(-8.2095, abs=1e-4)


def test_exponential_numbers_are_logarithms_to_the_last_places() -> None:
    bits = some_bits()
    parts, rest = (bits >> 12).tolist(), (2**52 - 1 - (bits >> 12)).tolist()
    near_1 = [log1p(-(each + 0.5) / 2**52) for each in rest]
    expected = [
        -(near if part >= 2**51 else log((part + 0.5) / 2**52)) for part, near in zip(parts, near_1, strict=True)
    ]
    np.testing.assert_allclose(exponential_of_bits(np, bits), expected, rtol=1e-15)


def test_no_bits_give_infinity_or_nan() -> None:
    edges = np.array(EDGES, np.uint64)
    for numbers in (normal_of_bits(np, edges), exponential_of_bits(np, edges)):
        assert np.isfinite(numbers).all()
    assert (exponential_of_bits(np, edges) > 0).all()


def test_scalars_give_what_arrays_give() -> None:
    bits = some_bits()[:40]
    for function in (normal_of_bits, exponential_of_bits):
        assert [function(np, each) for each in bits] == function(np, bits).tolist()
