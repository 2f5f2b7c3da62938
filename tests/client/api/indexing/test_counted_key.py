"""Keys that depend on the counter of a loop are slices, and give what they give in a Python loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from fusewire.testing import MemoryServer, session_in_memory
from tests.client.peer import connect
from tests.patience import HANGS_S

DATA = np.random.default_rng(0).standard_normal((12, 6))
Key = Callable[[Any], Any]

IN_SLICES: dict[str, Key] = {
    "a row": lambda i: i,
    "a later row": lambda i: i + 7,
    "a row from the back": lambda i: 11 - i,
    "a row that counts from the back": lambda i: i - 6,
    "every other row": lambda i: 2 * i + 1,
    "a column": lambda i: (slice(None), i),
    "an element": lambda i: (i, i + 1),
    "behind an ellipsis": lambda i: (..., i),
    "with a new axis": lambda i: (None, i),
    "some rows": lambda i: slice(i, i + 4),
    "rows that count from the back": lambda i: (slice(i - 9, i - 5), i - 6),
    "rows that lie apart": lambda i: (slice(i, i + 5, 2), slice(1, 4)),
    "no rows": lambda i: slice(i, i),
    "rows one behind another": lambda i: (slice(2 * i, 2 * i + 2), i),
}
BY_PLACES: dict[str, Key] = {
    "a row before the first": lambda i: i - 1,
    "rows in turn": lambda i: i % 3,
    "rows that an array chooses": lambda i: (i + np.arange(2),),
    "an element before the first": lambda i: (i - 1, i - 1),
}


def ops_of(program: Any) -> set[str]:
    return {op.op.name for op in program.ops}


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("name", [*IN_SLICES, *BY_PLACES])
def test_elements_are_those_of_the_same_key_in_numpy(name: str, n: int) -> None:
    key = (IN_SLICES | BY_PLACES)[name]
    with connect().session as session:
        data = session.array(DATA)
        result = fw.fori_loop(n, lambda i, total: total * 0.5 + data[key(i)].sum(), session.array(1.0))
        total = np.float64(1.0)
        for i in range(n):
            total = total * 0.5 + DATA[key(i)].sum()
        np.testing.assert_allclose(result.numpy(timeout=HANGS_S), total, rtol=1e-12)


@pytest.mark.parametrize("name", IN_SLICES)
def test_a_loop_has_no_other_op_for_them_than_a_slice(name: str) -> None:
    server = MemoryServer()
    with session_in_memory(server) as session:
        data = session.array(DATA)
        fw.fori_loop(3, lambda i, total: total + data[IN_SLICES[name](i)].sum(), session.array(1.0)).numpy()
        (program,) = server.programs.values()
    assert "slice" in ops_of(program)
    assert "take" not in ops_of(program)


@pytest.mark.parametrize("n", [1, 5])
@pytest.mark.parametrize("name", IN_SLICES)
def test_an_assignment_changes_the_elements_that_it_changes_in_numpy(name: str, n: int) -> None:
    key = IN_SLICES[name]

    def body(i: Any, data: Any) -> Any:
        data = data * 0.5
        data[key(i)] = 7.0
        return data

    with connect().session as session:
        result = fw.fori_loop(n, body, session.array(DATA))
        expected = DATA
        for i in range(n):
            expected = body(i, expected)
        np.testing.assert_array_equal(result.numpy(timeout=HANGS_S), expected)


@pytest.mark.parametrize(
    ("key", "error", "message"),
    [
        (lambda i: slice(i, None), fw.ShapeError, "another length in each iteration"),
        (lambda i: slice(None, i), fw.ShapeError, "another length in each iteration"),
        (lambda i: slice(i, 5), fw.ShapeError, "another length in each iteration"),
        (lambda i: slice(i, 2 * i + 1), fw.ShapeError, "another length in each iteration"),
        (lambda i: slice(i, i + 9), IndexError, "leaves axis 0 of length 12"),
        (lambda i: slice(i - 1, i + 1), IndexError, "leaves axis 0 of length 12"),
        (lambda i: (0, slice(3 - i, 5 - i)), IndexError, "leaves axis 1 of length 6"),
        (lambda i: slice(i, i % 2 + 2), fw.RequestError, "asks for a value"),
        (lambda i: slice(i, i + 1.0), TypeError, "only an integer array"),
        (lambda i: slice(i, 2.0), TypeError, "as an integer"),
        (lambda i: slice(i + 2, i, -1), fw.ArgumentError, "a step of 1 or more"),
        (lambda i: (0, 0, i), IndexError, "too many indices"),
        (lambda i: i + 8, IndexError, "an index in the body of fori_loop leaves axis 0 of length 12"),
        (lambda i: (0, i - 7), IndexError, "an index in the body of fori_loop leaves axis 1 of length 6"),
    ],
)
def test_a_key_that_has_no_known_length_or_leaves_the_array_is_refused(
    key: Key, error: type[Exception], message: str
) -> None:
    with connect().session as session:
        data = session.array(DATA)
        with pytest.raises(error, match=message):
            fw.fori_loop(5, lambda i, total: total + data[key(i)].sum(), session.array(1.0))


def test_the_counter_of_a_loop_of_another_session_is_no_key() -> None:
    with connect().session as one, connect().session as other:
        data = other.array(DATA)

        def body(i: Any, x: Any) -> Any:
            fw.fori_loop(2, lambda _, total: total + data[i].sum(), other.array(1.0))
            return x

        with pytest.raises(fw.ArgumentError, match="another session"):
            fw.fori_loop(3, body, one.array(0.0))
