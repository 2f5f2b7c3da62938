"""A tape that notes keeps each op, its operands and its result, whichever way the op is recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from fusewire._recording.notes import NotedOp, Notes
from fusewire._recording.signature import signature_of
from fusewire.testing import session_in_memory

X = np.arange(6.0).reshape(2, 3)

# Each is recorded twice: the second time as a known op or call.
WAYS: dict[str, tuple[Callable[[Any], Any], str, tuple[object, ...]]] = {
    "an operator of arrays": (lambda x: x + x, "add", ()),
    "an operator beside a number": (lambda x: x * 2.5, "multiply", (2.5,)),
    "a reflected operator": (lambda x: 2.5 - x, "subtract", (2.5,)),
    "a prefix": (lambda x: -x, "negative", ()),
    "a function": (fw.exp, "exp", ()),
    "a function beside NumPy's number": (lambda x: fw.add(x, np.float32(2)), "add", (2.0,)),
    "a method": (lambda x: x.sum(axis=0), "sum", ()),
    "a slice": (lambda x: x[1, 1:], "slice", (1, 1)),
    "a creation": (lambda x: fw.zeros(3), "full", (0.0,)),
    "a join": (lambda x: fw.concat([x, x]), "concat", ()),
}


@pytest.fixture
def session() -> Iterator[fw.Session]:
    with session_in_memory() as session:
        yield session


def _noted(x: fw.Array, record: Callable[[], Any]) -> Notes:
    notes = x._recorder.notes = Notes()
    try:
        record()
    finally:
        x._recorder.notes = None
    return notes


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("times_before", [0, 1, 3])
def test_an_op_is_noted(session: fw.Session, way: str, times_before: int) -> None:
    record, name, values = WAYS[way]
    x = session.array(X)
    for _ in range(times_before):
        record(x)
    results: list[fw.Array] = []
    notes = _noted(x, lambda: results.append(record(x)))
    (noted,) = notes.items
    assert isinstance(noted, NotedOp)
    assert (noted.result, noted.values) == (results[0]._handle, values)
    assert signature_of(noted.signature).op.name == name
    assert {*noted.handles} <= {x._handle}
    assert notes.arrays_since((0, 0)).keys() == {results[0]._handle, *noted.handles}


def test_arrays_of_other_threads_and_uploads_are_kept(session: fw.Session) -> None:
    x = session.array(X)
    notes = _noted(x, lambda: x * session.array(X))
    (noted,) = notes.items
    assert isinstance(noted, NotedOp)
    assert notes.arrays_since((0, 0)).keys() == {noted.result, *noted.handles}


@pytest.mark.parametrize("assign", ["item", "operator", "method"])
def test_both_values_of_an_array_that_is_assigned_to_are_kept(session: fw.Session, assign: str) -> None:
    x = session.array(X)
    before = x._handle

    def record() -> None:
        if assign == "item":
            x[0] = 1.0
        elif assign == "operator":
            x.__imul__(2.0)
        else:
            fw.add(x, 1.0, out=x)

    notes = _noted(x, record)
    assert x._handle != before
    kept = notes.arrays_since((0, 0))
    assert {before, x._handle} <= kept.keys()
    assert kept[x._handle] is x


def test_nothing_is_noted_without_notes(session: fw.Session) -> None:
    x = session.array(X)
    notes = _noted(x, lambda: None)
    _ = x + 1
    assert notes.items == []


def test_notes_that_raise_leave_the_op_recorded(session: fw.Session) -> None:
    class Full(Notes):
        def add(self, *noted: Any) -> None:
            raise MemoryError

    x = session.array(X)
    recorded = x._recorder.ops_recorded
    x._recorder.notes = Full()
    with pytest.raises(MemoryError):
        _ = x + 1
    x._recorder.notes = None
    assert x._recorder.ops_recorded == recorded + 1
    np.testing.assert_array_equal((x + 2).numpy(), X + 2)


def test_a_body_is_cut_out_of_the_notes(session: fw.Session) -> None:
    x = session.array(X)
    notes = x._recorder.notes = Notes()
    _ = x + 1
    place = notes.place
    inner = x * 2
    ops, arrays = notes.cut(place)
    x._recorder.notes = None
    assert [op.result for op in ops] == [inner._handle]
    assert {array._handle for array in arrays} == {x._handle, inner._handle}
    assert len(notes.items) == 1
