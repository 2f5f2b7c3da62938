"""Functions that add elements, leave them out or join blocks, held to NumPy: one source runs on both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fusewire as fw
from tests.client.peer import connect

A = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
HOSTS = {"matrix": A, "integers": A.astype(np.int16), "flags": A % 3 == 0}


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


def same(actual: fw.Array, expected: Any) -> None:
    assert isinstance(actual, fw.Array)
    np.testing.assert_array_equal(actual.numpy(), expected, strict=True)


EDITS: dict[str, Callable[[Any, Any], Any]] = {
    "insert a row": lambda xp, a: xp.insert(a, 1, 1, axis=0),
    "insert a vector as a row": lambda xp, a: xp.insert(a, 1, [1, 0, 1, 0], axis=0),
    "insert a vector as a column": lambda xp, a: xp.insert(a, -1, [1, 0, 1], axis=1),
    "insert columns at one place": lambda xp, a: xp.insert(a, [1], [[1], [0], [1]], axis=1),
    "insert at places": lambda xp, a: xp.insert(a, [3, 0, 3], 1, axis=1),
    "insert values at places": lambda xp, a: xp.insert(a, [2, 2, 0], [1, 0, 1]),
    "insert by a slice": lambda xp, a: xp.insert(a, slice(0, 6, 2), [1, 0, 1]),
    "insert by a mask": lambda xp, a: xp.insert(a, np.array([True, False, True]), 1, axis=0),
    "insert nothing": lambda xp, a: xp.insert(a, [], 1, axis=0),
    "insert at the end": lambda xp, a: xp.insert(a, 12, 1),
    "delete a row": lambda xp, a: xp.delete(a, 1, axis=0),
    "delete from the back": lambda xp, a: xp.delete(a, -1, 1),
    "delete places": lambda xp, a: xp.delete(a, [0, 2, 0], axis=1),
    "delete by a slice": lambda xp, a: xp.delete(a, slice(None, None, 2)),
    "delete by a mask": lambda xp, a: xp.delete(a, np.array([True, False, True]), axis=0),
    "delete nothing": lambda xp, a: xp.delete(a, []),
    "resize smaller": lambda xp, a: xp.resize(a, (2, 3)),
    "resize larger": lambda xp, a: xp.resize(a, (5, 7)),
    "resize to a length": lambda xp, a: xp.resize(a, 30),
    "resize to nothing": lambda xp, a: xp.resize(a, (0, 3)),
    "resize of nothing": lambda xp, a: xp.resize(a[:0], (2, 2)),
    "block of one": lambda xp, a: xp.block(a),
    "block of a row": lambda xp, a: xp.block([a, a]),
    "block of rows": lambda xp, a: xp.block([[a, a[:, :1]], [a[:1, :3], a[:1, :2]]]),
    "block of vectors": lambda xp, a: xp.block([[a[0]], [a[1]]]),
    "block of a cube": lambda xp, a: xp.block([a[None], a[None]]),
}


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("name", EDITS)
def test_an_edit_gives_what_numpys_gives(session: fw.Session, name: str, host: str) -> None:
    x = session.array(HOSTS[host])
    expected = EDITS[name](np, HOSTS[host])
    same(EDITS[name](fw, x), expected)
    if "block" not in name or name == "block of one":
        same(EDITS[name](np, x), expected)


@settings(deadline=None, max_examples=40)
@given(places=st.lists(st.integers(-6, 6), max_size=5), removed=st.lists(st.integers(-6, 5), max_size=5))
def test_edits_at_any_places_are_those_of_numpy(session: fw.Session, places: list[int], removed: list[int]) -> None:
    host = np.arange(6)
    values = np.arange(10, 10 + len(places))
    same(fw.insert(session.array(host), places, values), np.insert(host, places, values))
    same(fw.delete(session.array(host), removed), np.delete(host, removed))


@pytest.mark.parametrize("trim", ["f", "b", "fb", "FB"])
@pytest.mark.parametrize("host", [[0, 0, 1, 0, 2, 0], [1.0, 2.0], [0, 0], []])
def test_zeros_at_the_ends_are_left_out(session: fw.Session, host: list[float], trim: Any) -> None:
    same(fw.trim_zeros(session.array(np.array(host)), trim), np.trim_zeros(np.array(host), trim))


REFUSED: dict[str, tuple[type[Exception], Callable[[Any, Any], Any]]] = {
    "a place too far": (IndexError, lambda xp, a: xp.insert(a, 14, 1)),
    "a place too far back": (IndexError, lambda xp, a: xp.insert(a, -5, 1, axis=0)),
    "a place that is no integer": (IndexError, lambda xp, a: xp.insert(a, [0.5, 1.0], 1)),
    "values that do not fit": (ValueError, lambda xp, a: xp.insert(a, 1, [1, 2, 3], axis=0)),
    "an axis out of range": (IndexError, lambda xp, a: xp.insert(a, 1, 1, axis=2)),
    "an index too far": (IndexError, lambda xp, a: xp.delete(a, 12)),
    "an axis out of range to delete from": (IndexError, lambda xp, a: xp.delete(a, 0, axis=-3)),
    "no blocks": (ValueError, lambda xp, a: xp.block([])),
    "blocks of two depths": (ValueError, lambda xp, a: xp.block([a, [a]])),
    "a tuple of blocks": (TypeError, lambda xp, a: xp.block((a, a))),
    "a shape below 0": (ValueError, lambda xp, a: xp.resize(a, (2, -1))),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_edit_is_refused_where_numpy_refuses_it(session: fw.Session, name: str) -> None:
    kind, edit = REFUSED[name]
    with pytest.raises(kind):
        edit(np, A)
    with pytest.raises(kind):
        edit(fw, session.array(A))


@pytest.mark.parametrize(("x", "trim"), [(A, "fb"), (A[0], "x"), (A[0], "")])
def test_trim_zeros_refuses_matrices_and_other_ends(session: fw.Session, x: Any, trim: str) -> None:
    with pytest.raises(fw.FusewireError):
        fw.trim_zeros(session.array(x), trim)
