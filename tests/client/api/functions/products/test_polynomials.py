"""Polynomials and windows, held to NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from tests.client.peer import connect


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


def same(actual: fw.Array, expected: Any) -> None:
    assert isinstance(actual, fw.Array)
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-12, strict=True)


@pytest.mark.parametrize("x", [np.linspace(-2, 2, 7).reshape(7, 1), np.arange(4), np.array(1.5)])
@pytest.mark.parametrize("p", [[3.0, -2.0, 0.5], [2, 1], [4], []])
def test_polynomials_have_the_values_that_numpy_finds(session: fw.Session, p: list[float], x: Any) -> None:
    expected = np.asarray(np.polyval(np.array(p), x))
    same(fw.polyval(np.array(p), session.array(x)), expected)
    dispatched: Any = np.polyval(np.array(p), session.array(x))
    same(dispatched, expected)


@pytest.mark.parametrize("increasing", [False, True])
@pytest.mark.parametrize("columns", [None, 0, 1, 2, 5])
@pytest.mark.parametrize("x", [np.array([1.0, 2.0, -3.0]), np.array([1, 2, 3], np.int16), np.array([True, False])])
def test_powers_are_those_of_numpy(session: fw.Session, x: Any, columns: int | None, increasing: bool) -> None:
    same(fw.vander(session.array(x), columns, increasing=increasing), np.vander(x, columns, increasing=increasing))


def test_other_ranks_and_numbers_of_columns_are_refused(session: fw.Session) -> None:
    matrix = session.array(np.ones((2, 2)))
    with pytest.raises(fw.ShapeError):
        fw.polyval(matrix, 1.0)
    with pytest.raises(fw.ShapeError):
        fw.vander(matrix)
    with pytest.raises(ValueError, match="0 or more"):
        fw.vander(matrix[0], -1)


@pytest.mark.parametrize("points", [0, 1, 2, 9])
@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hanning"])
def test_windows_are_those_of_numpy(name: str, points: int) -> None:
    same(getattr(fw, name)(points), getattr(np, name)(points))


def test_a_window_has_a_shape_and_a_number_of_points() -> None:
    same(fw.kaiser(8, 5.0), np.kaiser(8, 5.0))
    with pytest.raises(TypeError):
        fw.hanning(2.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [{}, {"w": np.linspace(1, 2, 9)}, {"cov": True}, {"cov": "unscaled"}], ids=str)
@pytest.mark.parametrize("columns", [(), (2,)])
def test_a_polynomial_is_fitted_as_numpy_fits_it(
    session: fw.Session, columns: tuple[int, ...], options: dict[str, Any]
) -> None:
    x, y = np.linspace(-1, 4, 9), np.random.default_rng(0).normal(size=(9, *columns))
    fitted = fw.polyfit(session.array(x), session.array(y), 2, **options)
    expected = np.polyfit(x, y, 2, **options)
    for ours, numpys in zip(*([each] if options.keys() <= {"w"} else each for each in (fitted, expected)), strict=True):
        np.testing.assert_allclose(ours.numpy(), numpys, rtol=1e-9, strict=True)
    slope: Any = np.polyfit(session.array([0, 1, 2]), session.array([1, 3, 5]), 1)
    np.testing.assert_allclose(slope.numpy(), [2, 1])
    for fit in (fw.polyfit, np.polyfit):
        by_name: Any = fit(session.array([0, 1, 2]), session.array([1, 3, 5]), deg=1)
        np.testing.assert_allclose(by_name.numpy(), [2, 1])


def test_all_that_is_known_of_a_fit_is_what_numpy_knows(session: fw.Session) -> None:
    x, y = np.linspace(-1, 4, 9), np.random.default_rng(0).normal(size=9)
    *found, cut = fw.polyfit(session.array(x), session.array(y), 2, full=True)
    numpys: Any = np.polyfit(x, y, 2, full=True)
    for ours, expected in zip(found, numpys[:-1], strict=True):
        np.testing.assert_allclose(ours.numpy(), expected, rtol=1e-9)
    assert cut == numpys[-1]


def test_a_polynomial_that_cannot_be_fitted_is_refused() -> None:
    x = fw.asarray([0.0, 1.0, 2.0])
    with pytest.raises(fw.ArgumentError, match="degree -1"):
        fw.polyfit(x, x, -1)
    with pytest.raises(fw.ShapeError, match=r"not the shapes \(3,\), \(2,\)"):
        fw.polyfit(x, x[:2], 1)
    with pytest.raises(fw.ArgumentError, match="more points than 3"):
        fw.polyfit(x, x, 2, cov=True)
    with pytest.raises(fw.ArgumentError, match="one point or more"):
        fw.polyfit(x[:0], x[:0], 1)
    for weights in ([1.0], [1.0, 2.0]):
        with pytest.raises(fw.ShapeError, match=rf"weights of shape \({len(weights)},\) beside \(3,\)"):
            fw.polyfit(x, x, 1, w=weights)
