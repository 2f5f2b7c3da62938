"""Functions whose results have as many elements as values decide, held to NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import fusewire as fw
from fusewire_protos.frames import Fetch
from tests.client.peer import connect

MATRIX = np.random.default_rng(0).standard_normal((3, 5))
REPEATED = np.random.default_rng(1).integers(0, 6, (4, 5))


@pytest.fixture(scope="module")
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


def same(ours: fw.Array, numpys: Any) -> None:
    np.testing.assert_array_equal(ours.numpy(), numpys, strict=True)


@pytest.mark.parametrize("x", [MATRIX > 0, REPEATED, np.zeros(3), np.zeros((0, 2))])
def test_indices_of_what_is_not_zero_are_those_of_numpy(session: fw.Session, x: Any) -> None:
    for ours, numpys in zip(fw.nonzero(session.array(x)), np.nonzero(x), strict=True):
        same(ours, numpys)
    same(fw.argwhere(session.array(x)), np.argwhere(x))
    same(fw.flatnonzero(session.array(x)), np.flatnonzero(x))


def test_nonzero_refuses_rank_0(session: fw.Session) -> None:
    with pytest.raises(fw.ArgumentError, match="rank 0"):
        fw.nonzero(session.array(1))


def test_what_a_condition_keeps_is_kept(session: fw.Session) -> None:
    x = session.array(MATRIX)
    same(fw.compress([True, False, True], x, axis=0), np.compress([True, False, True], MATRIX, axis=0))
    same(fw.compress([0, 1, 1], x), MATRIX.reshape(-1)[1:3])
    same(fw.compress(x[0] > 0, x, axis=1), np.compress(MATRIX[0] > 0, MATRIX, axis=1))
    same(fw.extract(x > 0, x), np.extract(MATRIX > 0, MATRIX))
    with pytest.raises(fw.ArgumentError, match="rank 2"):
        fw.compress(x > 0, x)


@pytest.mark.parametrize("x", [REPEATED, REPEATED > 2, np.zeros((0, 2)), np.array(3.0), REPEATED.astype(np.float16)])
def test_unique_elements_and_what_follows_are_those_of_numpy(session: fw.Session, x: Any) -> None:
    ours = fw.unique(session.array(x), return_index=True, return_inverse=True, return_counts=True)
    numpys = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    for one, other in zip(ours, numpys, strict=True):
        same(one, other)
    same(fw.unique(session.array(x)), np.unique(x))


@settings(deadline=None, max_examples=30)
@given(x=npst.arrays(np.float64, npst.array_shapes(max_side=4), elements=npst.from_dtype(np.dtype(np.float16))))
def test_the_standards_functions_of_unique_elements_are_those_of_numpy(session: fw.Session, x: Any) -> None:
    given_array = session.array(x)
    same(fw.unique_values(given_array), np.sort(np.unique_values(x)))
    for ours, numpys in zip(fw.unique_counts(given_array), np.unique_counts(x), strict=True):
        same(ours, numpys)
    found = fw.unique_all(given_array)
    same(found.values.take(found.inverse_indices.reshape(-1), 0).reshape(x.shape), x)
    same(given_array.reshape(-1).take(found.indices, 0), found.values.numpy())
    same(fw.unique_inverse(given_array).inverse_indices, found.inverse_indices.numpy())


_COMPLEX = st.builds(complex, *[st.sampled_from([0.0, -0.0, 1.0, -2.0, np.inf, np.nan])] * 2)


@settings(deadline=None, max_examples=40)
@given(
    # At most 16 elements: beyond, NumPy's sort leaves NaNs that are equal to the sort in an order of its own.
    x=npst.arrays(np.complex128, npst.array_shapes(max_dims=2, max_side=4), elements=_COMPLEX),
    y=npst.arrays(np.complex128, 3, elements=_COMPLEX),
)
def test_complex_elements_are_told_apart_as_numpys(session: fw.Session, x: Any, y: Any) -> None:
    ours = fw.unique(session.array(x), return_index=True, return_inverse=True, return_counts=True)
    numpys = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    for one, other in zip(ours, numpys, strict=True):
        same(one, other)
    standards = fw.unique_all(session.array(x))
    same(standards.counts, np.unique_counts(x).counts)
    same(fw.unique_inverse(session.array(x)).inverse_indices, np.unique_inverse(x).inverse_indices)
    same(fw.isin(session.array(x), session.array(y)), np.isin(x, y))
    finite = x[np.isfinite(x)]
    same(fw.union1d(session.array(finite), session.array(y)), np.union1d(finite, y))
    same(fw.intersect1d(session.array(finite), session.array(y)), np.intersect1d(finite, y))


def test_rows_of_complex_numbers_are_told_apart(session: fw.Session) -> None:
    rows = np.array([[1 + 2j, 0], [1 + 2j, 0], [1 - 2j, 5], [1j, 1]])
    same(fw.unique(session.array(rows), axis=0), np.unique(rows, axis=0))


def test_all_nans_are_one_element_only_if_they_are_equal(session: fw.Session) -> None:
    x = session.array([1.0, np.nan, np.nan, 1.0])
    assert fw.unique(x).shape == (2,)
    assert fw.unique(x, equal_nan=False).shape == fw.unique_values(x).shape == (3,)


def test_repeats_on_the_server_are_read(session: fw.Session) -> None:
    same(fw.repeat(session.array(MATRIX), session.array([1, 0, 2]), axis=0), np.repeat(MATRIX, [1, 0, 2], axis=0))


@pytest.mark.parametrize("call", [fw.nonzero, fw.unique_all, fw.argwhere])
def test_a_call_waits_once(call: Any) -> None:
    peer = connect()
    with peer.session as session:
        call(session.array(MATRIX))
        assert sum(isinstance(entry, Fetch) for entry in peer.server.entries) == 1


SETS = [
    (np.array([3, 1, 2, 3]), np.array([2, 2, 5])),
    (np.array([[1.5, -0.5], [2.0, 1.5]]), np.array([1.5, 7.0])),
    (np.array([], np.int64), np.array([1, 2])),
    (np.array([1, 2]), np.array([], np.int64)),
]


@pytest.mark.parametrize(("one", "other"), SETS)
@pytest.mark.parametrize("name", ["union1d", "intersect1d", "setdiff1d", "setxor1d"])
def test_sets_are_those_of_numpy(session: fw.Session, name: str, one: Any, other: Any) -> None:
    expected = getattr(np, name)(one, other)
    same(getattr(fw, name)(session.array(one), session.array(other)), expected)
    same(getattr(np, name)(session.array(one), other), expected)


def test_the_places_of_common_elements_are_those_of_numpy(session: fw.Session) -> None:
    one, other = np.array([3, 1, 2, 3, 9]), np.array([9, 2, 2, 3])
    ours = fw.intersect1d(session.array(one), other, return_indices=True)
    for actual, expected in zip(ours, np.intersect1d(one, other, return_indices=True), strict=True):
        same(actual, expected)
    same(fw.setdiff1d(session.array(one), [1], assume_unique=True), np.array([3, 2, 3, 9]))


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize(
    "x",
    [
        np.array([[1, 2], [3, 1], [1, 2], [0, 9], [3, 1]]),
        np.random.default_rng(3).integers(0, 2, (3, 4, 2)),
        np.zeros((0, 2)),
        np.array([[0.5, -0.5, 0.5]]),
    ],
)
def test_different_parts_are_those_of_numpy(session: fw.Session, x: Any, axis: int) -> None:
    ours = fw.unique(session.array(x), True, True, True, axis=axis)
    numpys = np.unique(x, True, True, True, axis=axis)
    for one, other in zip(ours, numpys, strict=True):
        same(one, np.asarray(other).reshape(one.shape))
    same(fw.unique(session.array(x), axis=axis), np.unique(x, axis=axis))
