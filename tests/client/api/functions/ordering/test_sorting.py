"""Sorting, and what follows from it, agrees with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusewire as fw
from fusewire.testing import session_in_memory
from fusewire_protos.ops import dtypes

NAN = float("nan")
VECTOR = np.array([3.0, NAN, -0.0, 0.0, -1.5, 3.0, float("inf"), float("-inf")])
MATRIX = np.random.default_rng(0).integers(-4, 4, (5, 7))


@pytest.fixture
def session() -> Any:
    with session_in_memory() as opened:
        yield opened


def same(actual: fw.Array, expected: Any) -> None:
    wanted = np.asarray(expected)
    found = actual.numpy()
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_elements_are_sorted_along_an_axis_and_equal_ones_keep_their_order(session: fw.Session, axis: int) -> None:
    x = session.array(MATRIX)
    same(fw.sort(x, axis=axis), np.sort(MATRIX, axis=axis))
    same(fw.argsort(x, axis=axis), np.argsort(MATRIX, axis=axis, kind="stable"))


def test_nan_is_the_greatest_and_zeros_of_both_signs_are_equal(session: fw.Session) -> None:
    same(fw.sort(session.array(VECTOR)), np.sort(VECTOR, kind="stable"))
    assert fw.argsort(session.array(VECTOR), descending=True).tolist() == [1, 6, 0, 5, 2, 3, 4, 7]


@pytest.mark.parametrize("dtype", [dtype.name for dtype in dtypes.ALL if dtype is not dtypes.bfloat16])
def test_every_dtype_is_sorted(session: fw.Session, dtype: str) -> None:
    values = MATRIX.astype(dtype)
    same(fw.sort(session.array(values)), np.sort(values))


def test_several_keys_sort_by_the_last_first(session: fw.Session) -> None:
    keys = MATRIX[:2]
    same(fw.lexsort(session.array(keys)), np.lexsort(keys))


def test_rank_0_has_no_axis_to_sort_along(session: fw.Session) -> None:
    with pytest.raises(np.exceptions.AxisError):
        fw.sort(session.array(1.0))


def test_elements_are_taken_along_an_axis(session: fw.Session) -> None:
    places = np.array([[0], [-1], [2], [1], [6]])
    same(fw.take_along_axis(session.array(MATRIX), places, axis=1), np.take_along_axis(MATRIX, places, axis=1))


def test_indices_of_the_host_that_are_out_of_range_are_refused(session: fw.Session) -> None:
    with pytest.raises(IndexError):
        fw.take_along_axis(session.array(MATRIX), np.full((5, 1), 7), axis=1)


@pytest.mark.parametrize(("ours", "numpys"), [("cumulative_sum", "cumsum"), ("cumulative_prod", "cumprod")])
@pytest.mark.parametrize("dtype", ["int8", "uint16", "bool", "int64"])
def test_integers_accumulate_as_in_numpy(session: fw.Session, ours: str, numpys: str, dtype: str) -> None:
    values = MATRIX.astype(dtype)
    same(getattr(fw, ours)(session.array(values), axis=1), getattr(np, numpys)(values, axis=1))
    same(getattr(fw, numpys)(session.array(values)), getattr(np, numpys)(values))


def test_a_start_may_come_first(session: fw.Session) -> None:
    assert fw.cumulative_sum(session.array([1, 2, 3]), include_initial=True).tolist() == [0, 1, 3, 6]
    assert fw.cumulative_prod(session.array([2, 3]), include_initial=True).tolist() == [1, 2, 6]


def test_the_greatest_and_the_least_of_the_first_elements(session: fw.Session) -> None:
    x = session.array(MATRIX)
    same(fw.cumulative_max(x, axis=0), np.maximum.accumulate(MATRIX, axis=0))
    same(fw.cumulative_min(x, axis=0), np.minimum.accumulate(MATRIX, axis=0))


def test_a_matrix_does_not_accumulate_without_an_axis(session: fw.Session) -> None:
    with pytest.raises(fw.ArgumentError, match="needs an axis"):
        fw.cumulative_sum(session.array(MATRIX))


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_quantiles_are_numpys(session: fw.Session, method: Any, axis: int | None) -> None:
    q, values = [0.0, 0.25, 0.6, 1.0], MATRIX.astype(np.float64)
    found = fw.quantile(session.array(values), q, axis=axis, method=method).numpy()
    assert np.allclose(found, np.quantile(values, q, axis=axis, method=method), rtol=1e-15, atol=1e-15)


def test_the_median_of_nan_is_nan_and_keeps_its_axes_if_told(session: fw.Session) -> None:
    values = np.array([[1.0, NAN, 2.0], [3.0, 1.0, 2.0]])
    same(fw.median(session.array(values), axis=1, keepdims=True), np.median(values, axis=1, keepdims=True))


def test_a_quantile_beyond_1_is_refused(session: fw.Session) -> None:
    with pytest.raises(fw.ArgumentError, match="from 0 to 1"):
        fw.quantile(session.array([1.0]), 1.5)


@pytest.mark.parametrize("kth", [0, 3, -1, [1, 4]])
def test_a_partition_has_each_place_as_in_full_order(session: fw.Session, kth: Any) -> None:
    x = session.array(MATRIX)
    same(fw.partition(x, kth), np.sort(MATRIX))
    same(fw.take_along_axis(x, fw.argpartition(x, kth, axis=0), axis=0), np.sort(MATRIX, axis=0))


def test_a_partition_refuses_a_place_that_the_axis_lacks(session: fw.Session) -> None:
    for function in (fw.partition, fw.argpartition):
        with pytest.raises(fw.ArgumentError, match="kth = 7 is no place on axis -1 of length 7"):
            function(session.array(MATRIX), 7)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("axis", [0, -1])
def test_topk_has_the_first_elements_in_order_and_their_indices(session: fw.Session, axis: int, largest: bool) -> None:
    x = session.array(MATRIX)
    values, indices = fw.topk(x, 3, axis=axis, largest=largest)
    ordered = np.sort(MATRIX, axis=axis)
    same(values, np.take(np.flip(ordered, axis) if largest else ordered, range(3), axis=axis))
    same(values, np.take_along_axis(MATRIX, indices.numpy(), axis=axis))


@pytest.mark.parametrize("k", [-1, 8])
def test_topk_refuses_more_than_there_is(session: fw.Session, k: int) -> None:
    with pytest.raises(fw.ArgumentError, match=f"k = {k}"):
        fw.topk(session.array(MATRIX), k)
