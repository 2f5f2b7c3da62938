"""The members of NumPy's arrays that ours have too, and what is said of those that they lack."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from tests.client.peer import connect

A = np.random.default_rng(0).integers(-9, 9, (3, 4)).astype(np.float32)


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
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=1e-6, strict=True)


def changed(x: Any, change: Callable[[Any], None]) -> Any:
    copied = x.copy()
    assert change(copied) is None  # type: ignore[func-returns-value]
    return copied


MEMBERS: dict[str, Callable[[Any], Any]] = {
    "argsort": lambda x: x.argsort(),
    "argsort axis": lambda x: x.argsort(0, kind="stable"),
    "argsort flat": lambda x: x.argsort(None, kind="stable"),
    "sort": lambda x: changed(x, lambda y: y.sort()),
    "sort axis": lambda x: changed(x, lambda y: y.sort(axis=0)),
    "partition": lambda x: changed(x[0], lambda y: y.partition(2))[2],
    "argpartition": lambda x: x[0][x[0].argpartition(2)[2]],
    "searchsorted": lambda x: x[0, :0].searchsorted([1.0, 2.0], side="right"),
    "cumsum": lambda x: x.cumsum(),
    "cumsum axis": lambda x: x.cumsum(1, dtype="float64"),
    "cumprod": lambda x: x.cumprod(axis=0),
    "nonzero": lambda x: x.nonzero(),
    "compress": lambda x: x.compress([True, False, True], axis=0),
    "choose": lambda x: (x[0] > 0).astype("int64").choose([x[1], x[2]]),
    "put": lambda x: changed(x, lambda y: y.put([0, -1], [5.0, 6.0])),
    "fill": lambda x: changed(x, lambda y: y.fill(2.5)),
    "flatten": lambda x: x.flatten("C"),
    "ravel": lambda x: x.ravel(order="C"),
    "flatten by columns": lambda x: x.flatten("F"),
    "ravel by columns": lambda x: x.ravel("F"),
    "reshape by columns": lambda x: x.reshape((2, 6), order="F"),
    "reshape by columns with a dim to fill": lambda x: x.reshape(2, -1, order="F"),
    "reshape in any order": lambda x: x.reshape(4, 3, order="A"),
    "strides": lambda x: np.array(x.strides),
}


@pytest.mark.parametrize("name", MEMBERS)
def test_a_member_gives_what_numpys_gives(session: fw.Session, name: str) -> None:
    expected = MEMBERS[name](A)
    same(MEMBERS[name](session.array(A)), expected if isinstance(expected, tuple) else np.asarray(expected))


def test_a_member_that_changes_the_array_is_seen_by_all_its_names(session: fw.Session) -> None:
    x = session.array(A)
    other = x
    x.sort()
    same(other, np.sort(A))


def test_an_unknown_order_of_elements_is_refused(session: fw.Session) -> None:
    with pytest.raises(ValueError, match="none of 'C', 'F' and 'A'"):
        session.array(A).ravel("Z")


def test_elements_by_their_flat_index_are_read_and_assigned(session: fw.Session) -> None:
    x, host = session.array(A), A.copy()
    same(x.flat[5], host.flat[5])
    same(x.flat[2:9:3], host.flat[2:9:3])
    x.flat[3], host.flat[3] = 99.0, 99.0
    x.flat[[0, 1]], host.flat[[0, 1]] = [7.0, 8.0], [7.0, 8.0]
    same(x, host)
    same(np.asarray(x.flat), host.ravel())
    assert (len(x.flat), [*x.flat]) == (12, [*host.flat])


def test_an_element_is_read_by_its_index(session: fw.Session) -> None:
    x = session.array(A)
    assert (x.item(5), x.item(-1), x.item(1, 2), x.item((2, 0))) == (
        A.item(5),
        A.item(-1),
        A.item(1, 2),
        A.item((2, 0)),
    )
    for wrong in (12, (3, 0)):
        with pytest.raises(IndexError):
            x.item(wrong)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("tofile", "tofile"),
        ("flags", "flags"),
        ("__array_interface__", r"x\.numpy\(\)"),
        ("base", ""),
    ],
)
def test_a_member_of_numpys_arrays_that_is_missing_says_what_to_write(
    session: fw.Session, name: str, hint: str
) -> None:
    with pytest.raises(AttributeError, match=f"'Array' object has no attribute '{name}': write .*{hint}") as caught:
        getattr(session.array(A), name)
    assert caught.value.name == name


@pytest.mark.parametrize("name", ["nonsense", "__cuda_array_interface__", "_ipython_display_"])
def test_other_names_are_simply_missing(session: fw.Session, name: str) -> None:
    x = session.array(A)
    assert not hasattr(x, name)
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'$"):
        getattr(x, name)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.maximum, np.minimum, np.logical_and, np.logical_or])
@pytest.mark.parametrize("dtype", ["float32", "int16", "uint8", "bool"])
def test_a_ufunc_accumulates_as_numpys_does(session: fw.Session, ufunc: Any, dtype: str, axis: int) -> None:
    host = np.abs(A).astype(dtype)
    same(ufunc.accumulate(session.array(host), axis), ufunc.accumulate(host, axis))


def test_a_ufunc_accumulates_in_a_dtype_and_others_are_refused(session: fw.Session) -> None:
    x: Any = session.array(A)
    same(np.add.accumulate(x, dtype=np.float64), np.add.accumulate(A, dtype=np.float64))
    with pytest.raises(TypeError, match=r"hypot\.accumulate does not take arrays on a server"):
        np.hypot.accumulate(x)


def test_every_member_has_a_docstring() -> None:
    names = [name for name in dir(fw.Array) if not name.startswith("_")]
    assert [name for name in names if not getattr(fw.Array, name).__doc__] == []


def test_what_asks_for_numpys_array_gets_it(session: fw.Session) -> None:
    same(session.array(A).to_numpy(), A)
    same(session.array(A + 1j).to_numpy(), A + 1j)
