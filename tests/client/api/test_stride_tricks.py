"""Sliding windows against NumPy's, by NumPy's name and by ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import fusewire as fw
from tests.client.peer import connect

_WINDOWS = np.lib.stride_tricks.sliding_window_view


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


@st.composite
def _cases(draw: st.DrawFn) -> tuple[Any, Any, Any]:
    """An array, the shape of windows and axes, some of them perhaps twice; some windows are too long."""
    shape = draw(npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5))
    array = np.arange(np.prod(shape, dtype=int), dtype=np.int32).reshape(shape)
    if not shape or draw(st.booleans()):
        return array, tuple(draw(st.integers(0, 3)) for _ in shape), None
    axes = draw(st.lists(st.integers(-len(shape), len(shape) - 1), max_size=3))
    return array, tuple(draw(st.integers(0, 3)) for _ in axes), tuple(axes)


@given(_cases())
def test_windows_are_numpys(session: fw.Session, case: tuple[Any, Any, Any]) -> None:
    host, window, axis = case
    try:
        expected = _WINDOWS(host, window, axis)
    except ValueError:
        with pytest.raises(ValueError, match="window"):
            fw.lib.stride_tricks.sliding_window_view(session.array(host), window, axis)
    else:
        ours = fw.lib.stride_tricks.sliding_window_view(session.array(host), window, axis)
        np.testing.assert_array_equal(ours.numpy(), expected, strict=True)


def test_numpys_function_takes_arrays_of_ours(session: fw.Session) -> None:
    host: Any = np.arange(12).reshape(3, 4)
    ours: Any = session.array(host)
    for windows, expected in (
        (_WINDOWS(ours, (2, 2)), _WINDOWS(host, (2, 2))),
        (_WINDOWS(x=ours, window_shape=2, axis=1), _WINDOWS(x=host, window_shape=2, axis=1)),
    ):
        assert isinstance(windows, fw.Array)
        np.testing.assert_array_equal(windows.numpy(), expected, strict=True)


def test_windows_of_a_view_and_a_number_are_numpys(session: fw.Session) -> None:
    host = np.arange(12).reshape(3, 4)
    ours = fw.lib.stride_tricks.sliding_window_view(session.array(host).T[::-1], 2, 0)
    np.testing.assert_array_equal(ours.numpy(), _WINDOWS(host.T[::-1], 2, 0), strict=True)
    assert fw.lib.stride_tricks.sliding_window_view(session.array(3.0), ()).numpy() == 3.0


@pytest.mark.parametrize(
    ("window", "axis", "error"),
    [
        ((-1, 1), None, fw.ShapeError),
        ((2,), None, fw.ShapeError),
        ((2, 2, 2), None, fw.ShapeError),
        ((4, 1), None, fw.ShapeError),
        (2, 2, fw.AxisError),
        ((1,) * 40, (0,) * 40, fw.ShapeError),
        (2**70, 0, fw.ShapeError),
        (2.0, 0, TypeError),
    ],
)
def test_what_does_not_fit_is_refused_at_its_line(
    session: fw.Session, window: Any, axis: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        fw.lib.stride_tricks.sliding_window_view(session.array(np.zeros((3, 4))), window, axis)


def test_a_view_by_strides_in_bytes_is_numpys(session: fw.Session) -> None:
    host = np.arange(12, dtype=np.float32).reshape(3, 4)
    for shape, strides in (((3, 3, 2), (16, 4, 4)), ((3,), (20,)), ((2, 3), (0, 4)), (None, None)):
        expected = np.lib.stride_tricks.as_strided(host, shape, strides)
        found = fw.lib.stride_tricks.as_strided(session.array(host), shape, strides)
        np.testing.assert_array_equal(found.numpy(), expected, strict=True)
    for shape, strides in (((13,), (4,)), ((2,), (2,)), ((2, 2), (4,))):
        with pytest.raises(ValueError, match="stride"):
            fw.lib.stride_tricks.as_strided(session.array(host), shape, strides)


def test_a_strided_view_is_not_writeable(session: fw.Session) -> None:
    x = session.array(np.arange(6))
    assert fw.lib.stride_tricks.as_strided(x, (2,), (8,), writeable=False).tolist() == [0, 1]
    with pytest.raises(fw.ArgumentError, match=r"assign to x\[key\] itself"):
        fw.lib.stride_tricks.as_strided(x, (2,), (8,), writeable=True)
