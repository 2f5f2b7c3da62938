"""Indices and coordinates that follow from shapes, held to NumPy: one source runs on both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from tests.client.peer import connect

A = np.arange(20.0).reshape(4, 5)
SQUARE = np.arange(16).reshape(4, 4)


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


def same(actual: Any, expected: Any) -> None:
    if isinstance(expected, tuple):
        assert isinstance(actual, tuple)
        for ours, theirs in zip(actual, expected, strict=True):
            same(ours, theirs)
        return
    np.testing.assert_array_equal(np.asarray(actual), expected, strict=True)


GRIDS: dict[str, Callable[[Any], Any]] = {
    "indices": lambda xp: xp.indices((2, 3)),
    "indices of one axis": lambda xp: xp.indices((4,), dtype="float32"),
    "indices sparse": lambda xp: xp.indices((2, 3, 4), sparse=True),
    "mgrid": lambda xp: xp.mgrid[0:3, 1:2:4j],
    "mgrid of one axis": lambda xp: xp.mgrid[0:7:2],
    "meshgrid sparse": lambda xp: tuple(xp.meshgrid(xp.arange(2), xp.arange(3), xp.arange(4), sparse=True)),
    "meshgrid of rows": lambda xp: tuple(xp.meshgrid(xp.arange(2), xp.arange(3), indexing="ij", sparse=True)),
    "ogrid": lambda xp: xp.ogrid[0:3, 0:4],
    "ogrid of one axis": lambda xp: xp.ogrid[0:3],
}


@pytest.mark.parametrize("name", GRIDS)
def test_coordinates_are_those_of_numpy(name: str) -> None:
    ours = GRIDS[name](fw)
    assert all(isinstance(each, fw.Array) for each in (ours if isinstance(ours, tuple) else (ours,)))
    same(ours, GRIDS[name](np))


INDICES: dict[str, Callable[[Any, Any], Any]] = {
    "diag_indices": lambda xp, a: xp.diag_indices(3),
    "diag_indices of a cube": lambda xp, a: xp.diag_indices(3, 3),
    "diag_indices_from": lambda xp, a: xp.diag_indices_from(a[:, :4]),
    "tril_indices": lambda xp, a: xp.tril_indices(3, -1, 5),
    "triu_indices": lambda xp, a: xp.triu_indices(3, 1),
    "tril_indices_from": lambda xp, a: xp.tril_indices_from(a, 1),
    "triu_indices_from": lambda xp, a: xp.triu_indices_from(a),
    "ix_": lambda xp, a: xp.ix_([0, 2], [1, 3, 3]),
    "ix_ of booleans": lambda xp, a: xp.ix_([True, False, True, True], [1]),
    "ix_ of nothing": lambda xp, a: xp.ix_([], [1]),
}


@pytest.mark.parametrize("name", INDICES)
def test_indices_are_those_of_numpy_and_select_the_same(session: fw.Session, name: str) -> None:
    x = session.array(A)
    ours, numpys = INDICES[name](fw, x), INDICES[name](np, A)
    same(ours, numpys)
    host = np.zeros((4, 5, 3)) if len(numpys) == 3 else A
    same(session.array(host)[ours], host[numpys])


def test_indices_on_the_server_stay_there(session: fw.Session) -> None:
    x = session.array(A)
    rows, columns = fw.ix_(session.array([True, False, False, True]), session.array([4, 0]))
    assert (type(rows), type(columns)) == (fw.Array, fw.Array)
    same(x[rows, columns], A[np.ix_([0, 3], [4, 0])])
    on_server: Any = session.array([1, 2])
    same(np.ix_(on_server, on_server)[0], np.array([[1], [2]]))


WRONG: dict[str, Callable[[Any, Any], Any]] = {
    "a matrix of indices": lambda xp, a: xp.ix_(a, [0]),
    "axes of two lengths": lambda xp, a: xp.diag_indices_from(a),
    "a vector": lambda xp, a: xp.diag_indices_from(a[0]),
    "no matrix": lambda xp, a: xp.triu_indices_from(a[0]),
    "no matrix below": lambda xp, a: xp.tril_indices_from(a[None]),
}


@pytest.mark.parametrize("name", WRONG)
def test_other_ranks_are_refused_as_in_numpy(session: fw.Session, name: str) -> None:
    for xp, a in ((np, A), (fw, session.array(A))):
        with pytest.raises(ValueError, match=r"."):
            WRONG[name](xp, a)


@pytest.mark.parametrize("is_on_server", [False, True])
def test_flat_indices_and_those_of_axes_are_each_others_inverse(session: fw.Session, is_on_server: bool) -> None:
    flat = np.array([[0, 5], [23, 7]])
    given: Any = session.array(flat) if is_on_server else flat
    for xp in (fw, np):
        found: Any = xp.unravel_index(given, (2, 3, 4))
        same(found, np.unravel_index(flat, (2, 3, 4)))
        same(xp.ravel_multi_index(found, (2, 3, 4)), flat)
    assert fw.unravel_index(7, (2, 4)) == (1, 3)


def test_wrong_flat_indices_are_refused() -> None:
    with pytest.raises(ValueError, match="out of bounds"):
        fw.unravel_index(9, (2, 4))
    with pytest.raises(ValueError, match="2 indices do not fit 1 axes"):
        fw.ravel_multi_index(([0], [1]), (4,))


JOINED: dict[str, Callable[[Any, Any], Any]] = {
    "vectors": lambda xp, a: xp.r_[a[0], a[1]],
    "numbers": lambda xp, a: xp.r_[0, a[0], 1, 2.5],
    "slices": lambda xp, a: xp.r_[a[0], 0:3, 0:1:3j],
    "one": lambda xp, a: xp.r_[a[0]],
    "matrices": lambda xp, a: xp.r_[a, a],
    "columns": lambda xp, a: xp.c_[a[0], a[1]],
    "columns of a matrix": lambda xp, a: xp.c_[a, a[:, 0], np.ones(4)],
}


@pytest.mark.parametrize("name", JOINED)
def test_what_stands_in_brackets_is_joined_as_in_numpy(session: fw.Session, name: str) -> None:
    joined = JOINED[name](fw, session.array(A))
    assert isinstance(joined, fw.Array)
    same(joined, JOINED[name](np, A))


def test_texts_in_brackets_are_refused(session: fw.Session) -> None:
    with pytest.raises(TypeError, match=r"write fw\.concat"):
        fw.r_["0,2", session.array(A)]
