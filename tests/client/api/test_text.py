"""What is printed of an array is what NumPy prints, and only that is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from tests.client.peer import connect

A = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


@pytest.mark.parametrize(
    "host",
    [
        A,
        np.array(1.5),
        np.array(True),
        np.arange(5),
        np.zeros((2, 0)),
        np.arange(1000),
        np.arange(1001),
        np.linspace(-1e6, 1, 5000).reshape(2, 50, 50),
        np.arange(4000, dtype=np.int16).reshape(4, 1000),
        np.arange(3000).reshape(1000, 3) % 7 == 0,
        np.where(np.arange(2000) % 2 == 0, np.nan, np.inf),
    ],
    ids=lambda host: f"{host.dtype}{list(host.shape)}",
)
def test_an_array_is_printed_as_numpys_is(session: fw.Session, host: Any) -> None:
    x = session.array(host)
    assert str(x) == str(host)
    assert f"{x}" == f"{host}"


def test_options_of_numpy_say_how_an_array_is_printed(session: fw.Session) -> None:
    host = np.linspace(0, 1, 400).reshape(20, 20)
    with np.printoptions(threshold=50, edgeitems=2, precision=3):
        assert str(session.array(host)) == str(host)
    with np.printoptions(threshold=10**6):
        assert str(session.array(host)) == str(host)


def test_of_many_elements_only_those_are_read_that_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, unpatched = [], fw.Session.read

    def read(session: fw.Session, array: fw.Array, timeout: float | None) -> Any:
        sizes.append(array.size)
        return unpatched(session, array, timeout)

    with connect().session as session:
        x = session.array(np.zeros((1000, 1000), np.float32))
        monkeypatch.setattr(type(session), "read", lambda _, array, timeout: read(session, array, timeout))
        str(x)
    assert sizes == [49]


def test_in_a_body_that_is_recorded_once_dtype_and_shape_are_printed(session: fw.Session) -> None:
    printed = []

    def body(_: Any, x: Any) -> Any:
        printed.append(f"{x} {x + 1}")
        return x + 1

    fw.fori_loop(3, body, session.array(A))
    assert printed == ["<fusewire.Array float32[2, 3]> <fusewire.Array float32[2, 3]>"]


def test_a_notebook_says_how_an_array_is_read_and_then_shows_its_elements(session: fw.Session) -> None:
    shown: list[str] = []

    class Printer:
        text = staticmethod(shown.append)

    x = session.array([1, 2])
    x._repr_pretty_(Printer, False)
    str(x)
    x._repr_pretty_(Printer, False)
    assert shown == ["<fusewire.Array int64[2]: print(...) reads it>", "fusewire.Array([1, 2], dtype=int64)"]


def test_repr_sends_nothing(session: fw.Session) -> None:
    segments = session.stats.segments
    x = session.array(A) + 1
    repr(x)
    assert session.stats.segments == segments


def test_after_a_read_repr_shows_the_elements_as_numpy_does(session: fw.Session) -> None:
    x = session.array(A) * 2
    x.numpy()
    lines = np.array_repr(A * 2).replace("array(", "fusewire.Array(").splitlines()
    assert [line.strip() for line in repr(x).splitlines()] == [line.strip() for line in lines]
    y = x.sum()
    assert float(y) == 2 * A.sum()
    assert repr(y) == f"fusewire.Array({2 * A.sum()!s}, dtype=float32)"


def test_repr_shows_no_elements_of_an_array_that_has_changed_since(session: fw.Session) -> None:
    x = session.array(A)
    x.numpy()
    x[0] = 1
    assert repr(x) == "<fusewire.Array float32[2, 3]>"


def test_repr_of_an_empty_array_shows_its_shape(session: fw.Session) -> None:
    x = session.array(np.zeros((0, 3), np.float32))
    x.numpy()
    assert repr(x) == "<fusewire.Array float32[0, 3]>"


def test_what_failed_is_not_printed_but_raised(session: fw.Session) -> None:
    with connect().session as other:
        x = other.array(A)
    with pytest.raises(fw.FusewireError):
        str(x)
    assert repr(x) == "<fusewire.Array float32[2, 3]>"
