"""Small functions that choose between elements or tell of them, held to NumPy: one source runs on both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from tests.client.peer import connect

A = np.array([[1.5, -0.0, -2.0, np.nan], [0.0, 4.0, np.inf, -np.inf]])
CUBE = np.arange(24).reshape(2, 3, 4)


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


def same(actual: Any, expected: Any) -> None:
    if isinstance(actual, fw.Array):
        np.testing.assert_allclose(actual.numpy(), np.asarray(expected), strict=True)
    else:
        assert actual == expected
        assert type(actual) is type(expected)


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "select": lambda xp, x: xp.select([x < 0, x > 1], [x * 2, x + 1], default=7.0),
    "select overlapping": lambda xp, x: xp.select([x > 0, x > 1], [1, 2]),
    "select of rows": lambda xp, x: xp.select([x > 0], [x[0]], x),
    "angle": lambda xp, x: xp.angle(x),
    "angle in degrees": lambda xp, x: xp.angle(x[0, :3], True),
    "isreal": lambda xp, x: xp.isreal(x),
    "iscomplex": lambda xp, x: xp.iscomplex(x),
    "isrealobj": lambda xp, x: xp.isrealobj(x),
    "iscomplexobj": lambda xp, x: xp.iscomplexobj(x),
    "shape": lambda xp, x: xp.shape(x),
    "ndim": lambda xp, x: xp.ndim(x),
    "size": lambda xp, x: xp.size(x),
    "size of an axis": lambda xp, x: xp.size(x, axis=-1),
    "array_equiv": lambda xp, x: bool(xp.array_equiv(x[:, :1], x[:, :1])),
    "array_equiv broadcast": lambda xp, x: bool(xp.array_equiv(x[1, :1], [[0.0], [0.0]])),
    "array_equiv of other shapes": lambda xp, x: bool(xp.array_equiv(x, [1.0, 2.0, 3.0])),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_gives_what_numpys_gives(session: fw.Session, name: str) -> None:
    expected = CALLS[name](np, A)
    same(CALLS[name](fw, session.array(A)), expected)
    same(CALLS[name](np, session.array(A)), expected)


def test_the_angle_of_singles_is_single(session: fw.Session) -> None:
    host = np.array([1.0, -1.0, -0.0, np.nan], np.float32)
    same(fw.angle(session.array(host)), np.angle(host))


@pytest.mark.parametrize("start", [-1, 0, 1, 3])
@pytest.mark.parametrize("axis", [-3, 0, 1, 2])
def test_an_axis_is_rolled_as_in_numpy(session: fw.Session, axis: int, start: int) -> None:
    same(fw.rollaxis(session.array(CUBE), axis, start), np.rollaxis(CUBE, axis, start))


@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
@pytest.mark.parametrize("is_on_server", [False, True])
def test_choices_are_those_of_numpy(session: fw.Session, mode: Any, is_on_server: bool) -> None:
    at = np.array([[0, 1, 2, 1]]) if mode == "raise" else np.array([[0, -4, 7, 1]])
    given: Any = session.array(at) if is_on_server else at
    same(fw.choose(given, session.array(CUBE[0]), mode), np.choose(at, CUBE[0], mode=mode))


def test_booleans_choose_between_two(session: fw.Session) -> None:
    mask = CUBE[0] % 2 == 0
    same(session.array(mask).choose([session.array(CUBE[1]), -1]), mask.choose([CUBE[1], -1]))


def test_choices_that_numpy_refuses_are_refused(session: fw.Session) -> None:
    x = session.array(CUBE[0])
    for wrong in ([3], [-1]):
        with pytest.raises(ValueError, match="of 3"):
            fw.choose(wrong, x)
    with pytest.raises(ValueError, match="no mode 'last'"):
        fw.choose([0], x, "last")
    with pytest.raises(TypeError):
        fw.choose([0.5], x)


def test_select_refuses_other_numbers_and_other_conditions(session: fw.Session) -> None:
    x = session.array(A)
    for conditions, choices in (([], []), ([x > 0], [x, x])):
        with pytest.raises(ValueError, match="a choice for each condition"):
            fw.select(conditions, choices)
    with pytest.raises(TypeError, match="are boolean, not float64"):
        fw.select([x], [x])


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"])
def test_bits_are_counted_as_in_numpy(session: fw.Session, dtype: str) -> None:
    limits = (0, 1) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    host = np.array([*limits, 0, 1, limits[1] // 3, limits[0] // 3], object).astype(dtype)
    same(fw.bitwise_count(session.array(host)), np.bitwise_count(host))
    same(np.bitwise_count(session.array(host)), np.bitwise_count(host))


def test_bits_of_floats_are_not_counted(session: fw.Session) -> None:
    with pytest.raises(TypeError):
        fw.bitwise_count(session.array(A))
