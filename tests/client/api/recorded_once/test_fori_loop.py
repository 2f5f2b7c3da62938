"""A loop whose body is recorded once gives what the same body gives in a Python loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given

import fusewire as fw
from fusewire_protos.frames import MAX_ITERATIONS
from tests.client.peer import connect
from tests.drawn_loops import data
from tests.drawn_nests import Nest, drawn_nests, in_numpy, run_nest
from tests.effort import of_a_hundred
from tests.patience import HANGS_S
from tests.segments import loops_among

START = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


def loops_of(session: fw.Session, body: Callable[[Any, Any], Any], n: int = 5) -> tuple[Any, Any]:
    """The carry of `fori_loop`, and that of a Python loop."""
    start = session.array(START)
    plain: Any = start
    for index in range(n):
        plain = body(session.array(np.int64(index)), plain)
    return fw.fori_loop(n, body, start), plain


BODIES: dict[str, Callable[[Any, Any], Any]] = {
    "pointwise": lambda i, x: fw.tanh(x * 0.9 + 0.1),
    "with the index": lambda i, x: x + i.astype("float32"),
    "passed through": lambda i, x: x,
    "of one op": lambda i, x: -x,
    "with an upload": lambda i, x: x + x._recorder.owner.array(START),
    "with a window": lambda i, x: x + x[0:1],
    "with a row that the index chooses": lambda i, x: x + fw.take(x, i % 2, axis=0),
    "that assigns": lambda i, x: assigned(x),
}


def assigned(x: fw.Array) -> fw.Array:
    y = x * 1
    y[0] = y[1] + 1
    return y


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("n", [1, 2, 7])
def test_a_body_gives_what_it_gives_in_a_python_loop(name: str, n: int) -> None:
    with connect().session as session:
        ours, plain = loops_of(session, BODIES[name], n)
        np.testing.assert_array_equal(ours.numpy(timeout=HANGS_S), plain.numpy(timeout=HANGS_S))


class State(NamedTuple):
    value: Any
    others: dict[str, Any]


def test_a_carry_keeps_its_form() -> None:
    with connect().session as session:
        x = session.array(START)

        def body(i: fw.Array, state: State) -> State:
            return State(state.others["b"], {"a": state.value + 1, "b": state.others["a"] * 2})

        ours = fw.fori_loop(3, body, State(x, {"a": x + 1, "b": 2 * x}))
        assert isinstance(ours, State)
        assert list(ours.others) == ["a", "b"]
        plain = State(START, {"a": START + 1, "b": 2 * START})
        for _ in range(3):
            plain = State(plain.others["b"], {"a": plain.value + 1, "b": plain.others["a"] * 2})
        np.testing.assert_array_equal(ours.value.numpy(timeout=HANGS_S), plain.value)
        np.testing.assert_array_equal(ours.others["b"].numpy(timeout=HANGS_S), plain.others["b"])


def test_the_index_may_be_carried() -> None:
    with connect().session as session:
        carried = fw.fori_loop(3, lambda i, carry: (i, carry[1] + 1), (np.int64(7), session.array(START)))
        assert int(carried[0]) == 2
        np.testing.assert_array_equal(carried[1].numpy(timeout=HANGS_S), START + 3)


def test_a_number_may_be_carried() -> None:
    with connect().session as session:
        x, factor = fw.fori_loop(3, lambda i, each: (each[0] * 2, each[1] + 1.0), (session.array(START), 2.0))
        np.testing.assert_array_equal(x.numpy(timeout=HANGS_S), START * 8)
        assert float(factor) == 5.0


def test_a_number_stays_an_array_without_iterations() -> None:
    with connect().session as session:
        carried = fw.fori_loop(0, lambda i, carry: carry, (session.array(START), 1.5))
        assert isinstance(carried[1], fw.Array)
        assert float(carried[1]) == 1.5


def test_an_array_from_outside_keeps_its_value_because_the_body_cannot_assign_to_it() -> None:
    def outside(_: Any, x: fw.Array) -> fw.Array:
        kept[0] = 7.0
        return x

    def inside(_: Any, x: fw.Array) -> Any:
        uploaded = x._recorder.owner.array(START)
        for each in (x, uploaded):
            each[0] = 7.0
        return x + uploaded

    with connect().session as session:
        x = session.array(START)
        kept = x * 1
        with pytest.raises(fw.RequestError, match="assign to a copy"):
            fw.fori_loop(2, outside, x)
        with pytest.raises(fw.RequestError, match="assign to a copy"):
            fw.function(lambda each: outside(0, each))(x)
        np.testing.assert_array_equal(kept.numpy(timeout=HANGS_S), START)
        assert fw.fori_loop(1, inside, x * 1).numpy(timeout=HANGS_S)[0, 0] == 14.0


def test_the_same_array_may_be_carried_twice() -> None:
    with connect().session as session:
        x = session.array(START)
        a, b = fw.fori_loop(2, lambda i, each: (each[0] + 1, each[1] * 2), (x, x))
        np.testing.assert_array_equal(a.numpy(timeout=HANGS_S), START + 2)
        np.testing.assert_array_equal(b.numpy(timeout=HANGS_S), START * 4)


@pytest.mark.parametrize("n", [0, -3])
def test_no_iterations_return_new_arrays_of_the_carry(n: int) -> None:
    with connect().session as session:
        x = session.array(START)
        one, other = fw.fori_loop(n, lambda i, each: each, (x, x))
        one[0] = 9.0
        for same in (x, other):
            np.testing.assert_array_equal(same.numpy(timeout=HANGS_S), START)


def test_a_carry_without_a_value_is_refused() -> None:
    with connect().session as session, pytest.raises(fw.ArgumentError, match="the carry of fori_loop holds None"):
        fw.fori_loop(3, lambda i, each: each, (session.array(START), None))


def test_a_loop_is_one_small_entry_however_many_iterations_it_has() -> None:
    peer = connect(is_manual=True)
    fw.fori_loop(MAX_ITERATIONS, lambda i, x: x * 2, peer.session.array(START))
    assert peer.session.stats.segments == 1
    assert peer.session.stats.sent_bytes < 1000


def test_the_index_is_no_op_where_it_is_not_used() -> None:
    peer = connect()
    fw.fori_loop(3, lambda i, x: x * 2, peer.session.array(START)).numpy(timeout=HANGS_S)
    (loop,) = loops_among(peer.server.entries)
    assert peer.server.programs[loop.program].op_count == 1
    assert loop.repetition.scalars == ()


REFUSED: list[tuple[Callable[[Any, Any], Any], type[Exception], str]] = [
    (lambda i, x: x.sum(), fw.ShapeError, r"carry 0 is \(2, 3\) at first, and \(\) after"),
    (lambda i, x: x.astype("float64"), fw.DtypeError, "carry 0 is float32 at first, and float64"),
    (lambda i, x: (x, {"a": x}), fw.ArgumentError, r"gets a carry of the form _, but returns \(_, {'a': _}\)"),
    (lambda i, x: None, fw.ArgumentError, "returns None; it must return the next carry"),
    (lambda i, x: x if float(x.sum()) > 0 else -x, fw.RequestError, r"test_fori_loop\.py:\d+ asks for a value"),
    (lambda i, x: x if bool(i == 0) else -x, fw.RequestError, "asks for a value"),
    (lambda i, x: fw.fori_loop(2, lambda j, y: y, x), fw.RequestError, "within the body"),
]


@pytest.mark.parametrize(("body", "error", "text"), REFUSED)
def test_a_body_that_cannot_be_a_loop_is_refused_and_the_session_goes_on(
    body: Callable[[Any, Any], Any], error: type[Exception], text: str
) -> None:
    with connect().session as session:
        x = session.array(START)
        with pytest.raises(error, match=text):
            fw.fori_loop(3, body, x)
        np.testing.assert_array_equal((x + 1).numpy(timeout=HANGS_S), START + 1)


def test_more_iterations_than_a_loop_may_have_are_refused() -> None:
    with connect().session as session, pytest.raises(fw.ArgumentError, match="the most is 4294967296"):
        fw.fori_loop(MAX_ITERATIONS + 1, lambda i, x: x, session.array(START))


def test_an_error_in_the_body_reaches_the_caller_and_nothing_of_the_body_is_sent() -> None:
    peer = connect()
    x = peer.session.array(START)
    kept = []

    def body(i: fw.Array, each: fw.Array) -> fw.Array:
        kept.append(each * 2)
        raise KeyError("no")

    with pytest.raises(KeyError):
        fw.fori_loop(3, body, x)
    kept.clear()
    np.testing.assert_array_equal((x * 3).numpy(timeout=HANGS_S), START * 3)
    assert not loops_among(peer.server.entries)


def test_values_that_the_body_leaves_behind_are_not_known() -> None:
    with connect().session as session:
        kept: list[fw.Array] = []

        def body(i: fw.Array, x: fw.Array) -> fw.Array:
            kept.append(x + 1)
            return kept[-1] * 2

        fw.fori_loop(3, body, session.array(START)).numpy(timeout=HANGS_S)
        with pytest.raises(fw.UnknownHandle):
            kept[0].numpy(timeout=HANGS_S)
        kept.clear()
        assert session.array(START).numpy(timeout=HANGS_S).shape == START.shape


def test_ops_before_and_behind_a_loop_keep_their_order() -> None:
    with connect().session as session:
        x = session.array(START) + 1
        y = fw.fori_loop(4, lambda i, each: each + x, x * 2)
        np.testing.assert_array_equal((y - x).numpy(timeout=HANGS_S), (START + 1) * 5)


@of_a_hundred(30)
@given(drawn_nests(most_iterations=9))
def test_any_body_gives_what_python_gives(nest: Nest) -> None:
    arrays = data(np.int64)
    with connect().session as session:
        ours = run_nest(nest, fw, fw.fori_loop, [*map(session.array, arrays)], read=lambda x: x.numpy(timeout=HANGS_S))
        plain = run_nest(nest, np, in_numpy, arrays)
        for mine, theirs in zip(ours, plain, strict=True):
            np.testing.assert_array_equal(mine.numpy(timeout=HANGS_S), theirs)


def test_what_the_body_returns_as_it_got_it_is_an_input_that_is_the_same_in_each_iteration() -> None:
    peer = connect()
    with peer.session as session:
        x, w = session.array(START), session.array(START.T @ START)
        one, other, same = fw.fori_loop(4, lambda i, c: (fw.tanh(c[0] @ c[1]), c[1], c[2]), (x, w, 3))
        plain = x
        for _ in range(4):
            plain = fw.tanh(plain @ w)
        assert one.numpy(timeout=HANGS_S).tobytes() == plain.numpy(timeout=HANGS_S).tobytes()
        assert other.numpy(timeout=HANGS_S).tobytes() == w.numpy(timeout=HANGS_S).tobytes()
        assert int(same) == 3
        other[0] = 0.0  # a new array, whose change does not change `w`
        assert w.numpy(timeout=HANGS_S).any(axis=1).all()
    (loop,) = loops_among(peer.server.entries)
    program = peer.server.programs[loop.program]
    assert (program.op_count, len(program.carried)) == (2, 1)


def test_a_loop_that_changes_nothing_is_not_sent() -> None:
    peer = connect()
    with peer.session as session:
        x, y = session.array(START), session.array(START + 1)
        results = fw.fori_loop(4, lambda i, c: c, (x, y))
        assert [each.tolist() for each in results] == [x.tolist(), y.tolist()]
        assert results[0] is not x
    assert not loops_among(peer.server.entries)
