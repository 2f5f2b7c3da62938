"""Lists that hold arrays become one array without a read, as NumPy makes one of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from fusewire_protos.frames import Fetch, Upload
from tests.client.peer import connect

A = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


LISTS: dict[str, Callable[[Any], Any]] = {
    "arrays": lambda a: [a, a + 1],
    "a tuple": lambda a: (a[0], a[1]),
    "elements": lambda a: [a[0, 0], a[1, 2], a[0, 1]],
    "nested": lambda a: [[a[0, 0], a[0, 1]], (a[1, 0], a[1, 1])],
    "numbers beside them": lambda a: [a[0, 0], 2.5, 3],
    "booleans beside them": lambda a: [a[0, 0] > 1, True],
    "integers beside integers": lambda a: [a[0].astype("int32")[0], 7],
    "lists beside them": lambda a: [a[0], [1.0, 2.0, 3.0]],
    "host arrays beside them": lambda a: [a[0], np.ones(3, np.float64)],
    "one": lambda a: [a],
    "many": lambda a: [a[0] + number for number in range(700)],
}


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("function", [fw.array, fw.asarray], ids=["array", "asarray"])
def test_a_list_becomes_what_numpy_makes_of_it(session: fw.Session, name: str, function: Any) -> None:
    made = function(LISTS[name](session.array(A)))
    np.testing.assert_array_equal(made.numpy(), np.array(LISTS[name](A)), strict=True)


def test_nothing_is_read_and_no_number_uploaded() -> None:
    peer = connect()
    with peer.session as session:
        x = session.array(A)
        session.array([x[0, 0], [x[0, 1]][0], 1.0]).numpy()
    assert sum(isinstance(entry, Fetch) for entry in peer.server.entries) == 1
    assert sum(isinstance(entry, Upload) for entry in peer.server.entries) == 1


def test_a_dtype_may_be_asked_for(session: fw.Session) -> None:
    made = fw.asarray([session.array(A)[0, 0], 2.7], dtype="int16")
    assert (made.dtype, made.tolist()) == (fw.int16, [0, 2])


def test_a_list_is_in_the_session_of_its_arrays() -> None:
    with connect().session as first, connect().session as newest:
        x = first.array(A)
        assert fw.asarray([x, x]).session is first
        assert fw.asarray([1, 2]).session is newest
        with pytest.raises(fw.ArgumentError, match="another session"):
            newest.array([x, x])


def test_an_assignment_takes_a_list_of_arrays(session: fw.Session) -> None:
    x = session.array(A)
    x[0] = [x[1, 0], 9.0, x[1, 2]]
    assert x.tolist() == [[3, 9, 5], [3, 4, 5]]


def test_parts_of_different_shapes_are_refused(session: fw.Session) -> None:
    x = session.array(A)
    for wrong in ([x, x[0]], [x[0], 1.0], [[x[0, 0]], x[0, 0]]):
        with pytest.raises(ValueError, match="have one shape"):
            fw.asarray(wrong)
