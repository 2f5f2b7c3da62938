"""Random integers are of their range, fair, and of the dtype that is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fusewire as fw
from fusewire._api.random.integers import integers_from
from fusewire_protos.ops import dtypes
from tests.client.peer import connect

MANY = 40_000


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_integers_of_a_whole_dtype_reach_both_halves(dtype: str) -> None:
    limits = np.iinfo(dtype) if dtype != "bool" else None
    low, high = (0, 1) if limits is None else (int(limits.min), int(limits.max))
    for closed in (True, False):
        drawn = fw.random.Generator(1).integers(low, high + (not closed), 1000, dtype, endpoint=closed)
        values = drawn.numpy()
        assert values.dtype == dtype
        assert 400 < (values.astype(np.float64) > (low + high) / 2).sum() < 600


@pytest.mark.parametrize("span", [1, 2, 3, 10, 16, 1000])
@pytest.mark.parametrize("low", [0, -7, 2**62])
def test_all_integers_of_a_range_are_equally_likely(span: int, low: int) -> None:
    values = fw.random.Generator(1).integers(low, low + span, MANY).numpy()
    counts = np.bincount(values - low, minlength=span)
    assert len(counts) == span
    np.testing.assert_allclose(counts, MANY / span, atol=6 * (MANY / span) ** 0.5)


@given(
    st.integers(2**32 + 1, 2**64 - 1),
    st.integers(0, 2**64 - 1) | st.just(2**64 - 1),
    st.integers(0, 2**64 - 1) | st.just(0),
)
def test_a_wide_range_takes_the_integral_part_of_a_fraction_of_it(span: int, lower: int, upper: int) -> None:
    bits = iter([lower, upper])
    if 2**64 % span == 0:
        span -= 1
    drawn = integers_from(lambda: fw.full((), next(bits), "uint64"), 5, span, dtypes.uint64)
    expected = int(Fraction(lower + (upper << 64), 2**128) * span)
    assert drawn.item() == (expected + 5) % 2**64


def test_wide_ranges_are_even() -> None:
    span = 3 * 2**62  # a remainder of 64 bits would be twice as likely below 2^62
    values = fw.random.Generator(1).integers(span, size=MANY, dtype="uint64").numpy()
    shares = [(values // np.uint64(2**62) == part).mean() for part in range(3)]
    np.testing.assert_allclose(shares, 1 / 3, atol=5 * (2 / 9 / MANY) ** 0.5)


def test_bounds_may_be_any_integers_of_this_machine() -> None:
    expected = fw.random.Generator(1).integers(3, 9, 5).numpy()
    for convert in (np.int8, np.array):
        drawn = fw.random.Generator(1).integers(convert(3), convert(9), 5).numpy()
        np.testing.assert_array_equal(drawn, expected)


def test_ranges_that_numpy_refuses_are_refused(session: fw.Session) -> None:
    numpys, rng = np.random.default_rng(1), fw.random.Generator(1)
    refused: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((0,), {}),
        ((5, 5), {}),
        ((5, 3), {}),
        ((-1,), {}),
        ((256,), {"dtype": "uint8", "endpoint": True}),
        ((257,), {"dtype": "uint8"}),
        ((-1, 5), {"dtype": "uint64"}),
        ((2**63 + 1,), {}),
        ((5,), {"dtype": "float32"}),
        ((3,), {"dtype": "bool"}),
    ]
    for bounds, named in refused:
        with pytest.raises((ValueError, TypeError)) as expected:
            numpys.integers(*bounds, **named)
        with pytest.raises(expected.type):
            rng.integers(*bounds, **named)
    with pytest.raises(TypeError, match="not arrays on the server"):
        rng.integers(session.array(5))
    for wrong in (2.5, [1, 2]):
        with pytest.raises(TypeError):
            rng.integers(wrong)
