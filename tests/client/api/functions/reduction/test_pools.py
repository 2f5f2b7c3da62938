"""Pools are those of their definition, in one to three axes, with the gradients of differences."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fusewire as fw
from fusewire.testing import session_in_memory
from tests.client.api.gradients.differences import check, check_twice, drawn
from tests.effort import of_a_hundred
from tests.patience import HANGS_S

Host = npt.NDArray[Any]


@pytest.fixture(scope="module")
def session() -> Iterator[fw.Session]:
    with session_in_memory() as session:
        yield session


class _Case(NamedTuple):
    """An array, a window, and the parameters of a pool."""

    x: Host
    window: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    dilation: tuple[int, ...]
    ceil_mode: bool

    def options(self) -> dict[str, Any]:
        return {name: value for name, value in self._asdict().items() if name not in ("x", "window")}


@st.composite
def _cases(draw: st.DrawFn) -> _Case:
    """At least one window fits, and each has an element that is no padding."""
    rank, each = draw(st.integers(1, 3)), st.integers(1, 3)
    window, strides, dilation = (draw(st.tuples(*[each] * rank)) for _ in range(3))
    padding = tuple([(draw(st.integers(0, extent // 2)), draw(st.integers(0, extent // 2))) for extent in window])
    spans = [(extent - 1) * step + 1 for extent, step in zip(window, dilation, strict=True)]
    lengths = [draw(st.integers(span, span + 4)) for span in spans]
    generator = np.random.default_rng(draw(st.integers(0, 99)))
    x = generator.integers(-9, 9, (draw(st.integers(0, 2)), 2, *lengths)).astype(np.float64)
    return _Case(x, window, strides, padding, dilation, draw(st.booleans()))


def _expected(case: _Case, reduce: Callable[[list[float | None], int], float], *, counts_padding: bool = True) -> Host:
    """`reduce` gets the elements of a window, None for those of the padding, and how many count."""
    lengths = [_length(case, axis) for axis in range(len(case.window))]
    result = np.zeros((*case.x.shape[:2], *lengths))
    for place in np.ndindex(*result.shape):
        read: list[float | None] = []
        counted = 0
        for step in np.ndindex(*case.window):
            at = [
                i * stride + k * dilation - ahead
                for i, stride, k, dilation, (ahead, _) in zip(
                    place[2:], case.strides, step, case.dilation, case.padding, strict=True
                )
            ]
            dims = case.x.shape[2:]
            is_own = all(0 <= i < dim for i, dim in zip(at, dims, strict=True))
            is_near = all(i < dim + behind for i, dim, (_, behind) in zip(at, dims, case.padding, strict=True))
            read.append(float(case.x[(*place[:2], *at)]) if is_own else None)
            counted += is_own or (counts_padding and is_near)
        result[place] = reduce(read, counted)
    return result


def _length(case: _Case, axis: int) -> int:
    span = (case.window[axis] - 1) * case.dilation[axis] + 1
    dim, (ahead, behind), stride = int(case.x.shape[2 + axis]), case.padding[axis], case.strides[axis]
    steps = (dim + ahead + behind - span) / stride
    length = (math.ceil(steps) if case.ceil_mode else math.floor(steps)) + 1
    return length - 1 if (length - 1) * stride >= dim + ahead else length


def _greatest(read: Sequence[float | None], _counted: int) -> float:
    return max([each for each in read if each is not None], default=-math.inf)


def _mean(read: Sequence[float | None], counted: int) -> float:
    total = sum(each for each in read if each is not None)
    return total / counted if counted else math.nan


@of_a_hundred(40)
@given(case=_cases())
def test_the_greatest_elements_are_those_of_the_windows(session: fw.Session, case: _Case) -> None:
    ours = fw.max_pool(session.array(case.x), case.window, **case.options())
    np.testing.assert_array_equal(ours.numpy(timeout=HANGS_S), _expected(case, _greatest), strict=True)


@of_a_hundred(40)
@given(case=_cases(), counts_padding=st.booleans())
def test_means_are_those_of_the_windows(session: fw.Session, case: _Case, counts_padding: bool) -> None:
    ours = fw.avg_pool(session.array(case.x), case.window, **case.options(), count_include_pad=counts_padding)
    expected = _expected(case, _mean, counts_padding=counts_padding)
    np.testing.assert_allclose(ours.numpy(timeout=HANGS_S), expected, rtol=1e-12, strict=True)


@pytest.mark.parametrize("options", [{}, {"strides": 1, "padding": 1}, {"strides": 2, "ceil_mode": True}], ids=str)
@pytest.mark.parametrize("pool", [fw.max_pool, fw.avg_pool], ids=["max", "avg"])
def test_gradients_are_those_of_differences(
    session: fw.Session, pool: Callable[..., fw.Array], options: dict[str, Any]
) -> None:
    check(session, lambda x: pool(x, (2, 3), **options), drawn(1, 2, 5, 6))


def test_a_second_derivative_is_that_of_differences(session: fw.Session) -> None:
    check_twice(session, lambda x: fw.avg_pool(x, 2, strides=1), drawn(1, 1, 3, 3))
    check_twice(session, lambda x: fw.max_pool(x, 2, strides=1), drawn(1, 1, 3, 3))


def test_windows_lie_side_by_side_unless_strides_are_given(session: fw.Session) -> None:
    x = session.array(np.zeros((1, 1, 6, 6)))
    assert fw.max_pool(x, 2).shape == (1, 1, 3, 3)
    assert fw.avg_pool(x, (3, 2)).shape == (1, 1, 2, 3)


@pytest.mark.parametrize("dtype", [fw.float16, fw.bfloat16, fw.float32, fw.float64], ids=lambda dtype: dtype.name)
def test_floats_keep_their_dtype(session: fw.Session, dtype: fw.DType) -> None:
    x = session.array(np.full((1, 1, 4), 60000.0)).astype(dtype)
    for pool in (fw.max_pool, fw.avg_pool):
        ours = pool(x, 2)
        assert ours.dtype is dtype
        assert (ours == x[0, 0, 0]).all()  # no sum overflows


def test_integers_are_padded_by_their_least_and_have_float64_means(session: fw.Session) -> None:
    x = session.array(np.array([[[-5, -7, -9]]], np.int32))
    np.testing.assert_array_equal(fw.max_pool(x, 2, padding=1).numpy(), np.array([[[-5, -7]]], np.int32), strict=True)
    np.testing.assert_array_equal(fw.avg_pool(x, 3).numpy(), np.array([[[-7.0]]]), strict=True)


@pytest.mark.parametrize("pool", [fw.max_pool, fw.avg_pool], ids=["max", "avg"])
def test_what_does_not_fit_is_refused(session: fw.Session, pool: Callable[..., fw.Array]) -> None:
    x = session.array(np.zeros((1, 1, 4)))
    with pytest.raises(fw.ShapeError, match="1 to 3 spatial axes"):
        pool(x[0], 2)
    with pytest.raises(fw.ShapeError, match="spans 5 elements along spatial axis 0, which has 4"):
        pool(x, 5)
    with pytest.raises(fw.ArgumentError, match="window is 0 along spatial axis 0"):
        pool(x, 0)
    with pytest.raises(fw.ArgumentError, match="strides is 0"):
        pool(x, 2, strides=0)
    with pytest.raises(fw.ArgumentError, match="has 2 numbers for 1 spatial"):
        pool(x, (2, 2))
