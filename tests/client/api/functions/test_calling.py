"""Functions that call a function of the user, held to NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from tests.client.peer import connect

A = np.linspace(-3, 4, 24).reshape(2, 3, 4)


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


def same(actual: fw.Array, expected: Any) -> None:
    assert isinstance(actual, fw.Array)
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-12, strict=True)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize(
    "function",
    [
        lambda row: row.sum(),
        lambda row: row[::-1] * 2,
        lambda row: row[:, None] * row,
        lambda row: row[:0],
    ],
)
def test_a_function_of_vectors_gives_what_numpys_gives(
    session: fw.Session, function: Callable[[Any], Any], axis: int
) -> None:
    expected = np.asarray(np.apply_along_axis(function, axis, A))
    same(fw.apply_along_axis(function, axis, session.array(A)), expected)
    dispatched: Any = np.apply_along_axis(function, axis, session.array(A))
    same(dispatched, expected)


def test_a_function_of_vectors_gets_the_other_arguments(session: fw.Session) -> None:
    scaled = fw.apply_along_axis(lambda row, by, plus: row * by + plus, 0, session.array(A), 2, plus=1)
    same(scaled, A * 2 + 1)


def test_no_vectors_and_axes_out_of_range_are_refused(session: fw.Session) -> None:
    with pytest.raises(ValueError, match="no vectors"):
        fw.apply_along_axis(lambda row: row, 0, session.array(A[:, :0]))
    with pytest.raises(fw.AxisError):
        fw.apply_along_axis(lambda row: row, 3, session.array(A))


def test_a_function_of_a_grid_gets_the_coordinates() -> None:
    same(fw.fromfunction(lambda i, j: i * 10 + j, (3, 4)), np.fromfunction(lambda i, j: i * 10 + j, (3, 4)))
    whole = fw.fromfunction(lambda i, j, n: i * n == j, (3, 4), dtype="int64", n=2)
    same(whole, np.fromfunction(lambda i, j, n: i * n == j, (3, 4), dtype=int, n=2))


PIECES: dict[str, Callable[[Any, Any], Any]] = {
    "two numbers": lambda xp, x: xp.piecewise(x, [x < 0, x >= 0], [-1, 1]),
    "functions": lambda xp, x: xp.piecewise(x, [x < 0, x >= 0], [lambda a: -a, lambda a: a * a]),
    "a default": lambda xp, x: xp.piecewise(x, [x < -1, x > 1], [-1, 1, lambda a: a * 3]),
    "no default": lambda xp, x: xp.piecewise(x, [x > 1], [5]),
    "one condition": lambda xp, x: xp.piecewise(x[0, 0], x[0, 0] > 0, [1, 2]),
    "conditions that overlap": lambda xp, x: xp.piecewise(x, [x > 0, x > 1], [1, 2]),
    "other arguments": lambda xp, x: xp.piecewise(x, [x > 0], [lambda a, by: a * by], 7),
}


@pytest.mark.parametrize("name", PIECES)
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_pieces_are_those_of_numpy(session: fw.Session, name: str, dtype: str) -> None:
    host = (A * 2).astype(dtype)
    expected = PIECES[name](np, host)
    same(PIECES[name](fw, session.array(host)), expected)
    same(PIECES[name](np, session.array(host)), expected)


def test_other_numbers_of_functions_are_refused(session: fw.Session) -> None:
    x = session.array(A)
    for functions in ([], [1, 2, 3]):
        with pytest.raises(ValueError, match="1 or 2 functions"):
            fw.piecewise(x, [x > 0], functions)
