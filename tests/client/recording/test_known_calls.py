"""Calls that were made before record the same op again, and all others run their function."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from fusewire._api.ops import operations
from fusewire._recording.places import places
from fusewire._recording.recorded_ops import known_call, recorded_of_handle
from fusewire._recording.recorder import Recorder
from fusewire.testing import session_in_memory
from tests.client.peer import connect
from tests.patience import HANGS_S

NOT_INTERNED = "".join(chr(each) for each in b"other")
DATA = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
CALLS: list[Callable[[Any], Any]] = [
    lambda x: x.T,
    lambda x: x.transpose(1, 0, 2),
    lambda x: x.transpose((2, 0, -2)),
    lambda x: x.reshape(6, 4),
    lambda x: x.reshape((4, -1)),
    lambda x: x.reshape([3, 8]),
    lambda x: x.reshape(np.int64(24)),
    lambda x: x.ravel(),
    lambda x: x.sum(),
    lambda x: x.sum(axis=1),
    lambda x: x.sum(axis=(0, -1)),
    lambda x: x.sum(axis=1, keepdims=True),
    lambda x: x.mean(axis=-1),
    lambda x: x.max(axis=(0, 2)),
    lambda x: x.argmin(axis=1),
    lambda x: x.astype("int64"),
    lambda x: np.broadcast_to(x, (5, 2, 3, 4)),
]


@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_comes_again_gives_what_numpy_gives(call: Callable[[Any], Any]) -> None:
    with connect().session as session:
        x = session.array(DATA)
        first, again = call(x), call(x)
        for result in (first, again):
            np.testing.assert_allclose(result.numpy(timeout=HANGS_S), call(DATA), rtol=1e-6)


def test_a_known_call_finds_no_attributes(monkeypatch: pytest.MonkeyPatch) -> None:
    with connect().session as session:
        x = session.array(DATA)
        for call in CALLS[:2]:
            call(x)
            with monkeypatch.context() as patched:
                patched.setattr(operations, "apply_to_one", None)
                assert call(x).shape == call(DATA).shape


def test_the_same_call_of_another_shape_has_another_meaning() -> None:
    with connect().session as session:
        for shape in ((2, 3, 4), (4, 3, 2), (24,)):
            x = session.array(DATA.reshape(shape))
            assert x.T.shape == shape[::-1]
            assert x.reshape(-1, 2).shape == (12, 2)
            assert x.sum(axis=0).shape == shape[1:]


@pytest.mark.parametrize(
    "wrong", [lambda x: x.reshape(24.0), lambda x: x.sum(axis=1.0), lambda x: x.transpose(0.0, 1, 2)]
)
def test_a_float_is_refused_although_it_equals_a_known_integer(wrong: Callable[[Any], Any]) -> None:
    with connect().session as session:
        x = session.array(DATA)
        assert x.reshape(24).shape == (24,)
        assert x.sum(axis=1).shape == (2, 4)
        assert x.transpose(0, 1, 2).shape == DATA.shape
        with pytest.raises(TypeError):
            wrong(x)


@pytest.mark.parametrize(("function", "known", "refused"), [("max", 0, (0,)), ("sum", None, (None,))])
def test_one_item_and_a_tuple_of_it_are_two_arguments(function: str, known: Any, refused: Any) -> None:
    with connect().session as session:
        x = session.array(3.0)
        assert getattr(x, function)(axis=known).shape == ()
        with pytest.raises((TypeError, fw.AxisError)):
            getattr(x, function)(axis=refused)


def test_a_call_that_is_refused_is_refused_each_time() -> None:
    with connect().session as session:
        x = session.array(DATA)
        for _ in range(2):
            with pytest.raises(fw.ShapeError):
                x.reshape(5)
            with pytest.raises(fw.AxisError):
                x.sum(axis=3)


# ---- which calls are known ----


class Own(fw.Array):
    """A user's class."""


class Counted:
    """A function that counts how often it runs, and the same as a known call."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.runs = 0

        def run(*given: Any, **named: Any) -> Any:
            self.runs += 1
            return function(*given, **named)

        self.call = known_call(run)

    def runs_of(self, *given: Any, times: int = 3, **named: Any) -> int:
        before = self.runs
        for _ in range(times):
            self.call(*given, **named)
        return self.runs - before


@pytest.fixture
def x() -> fw.Array:
    return connect(is_manual=True).session.array(DATA)


def last_record_of(x: fw.Array) -> tuple[list[int], list[Any]]:
    """The signature and the handles of the last record of the thread's tape, and its values."""
    recorder: Recorder = x._recorder
    record = recorder.between(recorder.next_number - 1, recorder.next_number)
    return record[record >= 0].tolist(), recorder.values_of(record)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ((), {}),
        ((None, True, 3, "C", ...), {}),
        (((1, (2, 3)), [4, 5]), {}),
        ((slice(1, None), slice(2)), {}),
        ((fw.float32, np.float32, float, np.int64(3), np.uint8(3)), {}),
        ((), {"axis": 0, "keepdims": True}),
    ],
)
def test_a_call_with_plain_arguments_runs_its_function_once(x: fw.Array, given: Any, named: Any) -> None:
    assert Counted(lambda x, *given, **named: -x).runs_of(x, *given, **named) == 1


@pytest.mark.parametrize("argument", [2**70, 1j, b"C", {1}, {}, np.arange(2), np.float32(1), NOT_INTERNED, len])
def test_a_call_with_another_argument_runs_its_function_each_time(x: fw.Array, argument: Any) -> None:
    assert Counted(lambda x, argument: -x).runs_of(x, argument) == 3


def test_a_call_with_more_arguments_than_are_kept_runs_its_function_each_time(x: fw.Array) -> None:
    counted = Counted(lambda x, *more: -x)
    assert counted.runs_of(x, *range(40)) == 3
    assert counted.runs_of(x, *[x] * 9) == 3
    assert counted.runs_of(x, *[fw.float32] * 9) == 3


@pytest.mark.parametrize(
    "arguments",
    [
        (1, True, 1.0, np.int64(1), np.int32(1)),
        (0, False, 0.0, -0.0, None),
        ((0,), 0, [0], ((0,),), ()),
        (slice(0, 1, 2), (0, 1, 2), slice(0, 1), slice(None, 0, 1)),
        ("C", "F", ...),
        (fw.float32, np.float32, "float32"),
    ],
)
def test_equal_arguments_of_other_types_are_other_calls(x: fw.Array, arguments: tuple[Any, ...]) -> None:
    seen: list[Any] = []

    def note(x: fw.Array, argument: Any) -> fw.Array:
        seen.append(argument)
        return -x

    call = known_call(note)
    for argument in arguments:
        call(x, argument)
    assert [(type(each), repr(each)) for each in seen] == [(type(each), repr(each)) for each in arguments]


def test_an_argument_by_name_is_another_one_than_by_position(x: fw.Array) -> None:
    counted = Counted(lambda x, a=None, b=None: -x)
    assert [counted.runs_of(x, 1), counted.runs_of(x, a=1), counted.runs_of(x, b=1)] == [1, 1, 1]


def test_a_call_with_floats_is_known_when_it_comes_again(x: fw.Array) -> None:
    counted = Counted(lambda x, factor: x * factor)
    assert counted.runs_of(x, 0.5) == 2
    assert last_record_of(x)[1] == [0.5]
    assert [counted.runs_of(x, 1 / each, times=1) for each in range(3, 11)] == [1] * 8


def test_a_function_has_calls_of_its_own(x: fw.Array) -> None:
    one, other = Counted(lambda x: -x), Counted(lambda x: +x)
    assert (one.runs_of(x), other.runs_of(x)) == (1, 1)


def test_each_array_of_a_known_call_keeps_its_place(x: fw.Array) -> None:
    y, z = x + 1, x + 2
    counted = Counted(lambda a, b, c: c - a)
    for a, b, c in [(x, y, z), (z, x, y), (y, y, x), (x, x, x)]:
        counted.call(a, b, c)
        assert last_record_of(x)[0][1:] == [c._handle, a._handle]
    assert counted.runs == 1


def test_arrays_in_a_list_are_those_that_it_holds_now(x: fw.Array) -> None:
    y = x + 1
    given = [x, y]
    counted = Counted(lambda given: given[0] - given[1])
    for expected in ([x, y], [y, x]):
        given[:] = expected
        counted.call(given)
        assert last_record_of(x)[0][1:] == [each._handle for each in expected]
    assert counted.runs == 1


def test_a_list_that_its_function_changes_is_no_known_call(x: fw.Array) -> None:
    def first(given: list[Any]) -> Any:
        return -given.pop(0)

    given = [x, x + 1, x + 2]
    taken = [given[0]._handle, given[1]._handle]
    call = known_call(first)
    for handle in taken:
        call(given)
        assert last_record_of(x)[0][1:] == [handle]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x,
        lambda x: abs(-x),
        lambda x: (-x,),
        lambda x: None,
        lambda x: x * x._recorder.owner.array(DATA),
        lambda x: [-x, x][1],
        lambda x: x.__iadd__(x),
    ],
)
def test_what_is_not_one_op_of_the_arguments_runs_each_time(x: fw.Array, function: Callable[[Any], Any]) -> None:
    assert Counted(function).runs_of(x) == 3


def test_one_array_for_two_arguments_does_not_tell_which_is_which(x: fw.Array) -> None:
    counted = Counted(lambda a, b: -b)
    assert counted.runs_of(x, x) == 3
    counted.call(x, x + 1)
    assert counted.runs_of(x, x) == 0


def test_a_call_that_raises_raises_each_time(x: fw.Array) -> None:
    call: Any = Counted(lambda x, axis: operations.reduce("sum", x, axis, keepdims=False)).call
    for _ in range(3):
        with pytest.raises(fw.AxisError):
            call(x, 5)
        with pytest.raises(TypeError, match="axis"):
            call(x)


def test_arrays_of_another_thread_and_of_a_users_class_run_the_function(x: fw.Array) -> None:
    own = recorded_of_handle(Own, x._recorder, x._recorder.mint_upload(), x._spec)
    counted = Counted(lambda x: -x)
    assert counted.runs_of(x) == 1
    assert counted.runs_of(own) == 3
    assert type(counted.call(own)) is Own
    with ThreadPoolExecutor(1) as executor:
        assert executor.submit(counted.runs_of, x).result(timeout=HANGS_S) == 3


def test_arrays_of_two_sessions_are_refused_although_their_specs_are_known(x: fw.Array) -> None:
    stranger = connect(is_manual=True).session.array(DATA)
    call = Counted(lambda a, b: a + b).call
    call(x, x + 1)
    with pytest.raises(fw.ArgumentError, match="different sessions"):
        call(x, stranger)


def test_no_call_is_known_in_a_body(x: fw.Array) -> None:
    counted = Counted(lambda x: -x)
    counted.call(x)

    def body(i: Any, carry: Any) -> Any:
        return counted.call(counted.call(carry))

    fw.fori_loop(2, body, x)
    assert counted.runs == 3


def test_no_more_than_so_many_calls_are_kept() -> None:
    most = 4096
    counted = Counted(lambda x, number: -x)
    x = connect().session.array(DATA)
    assert counted.runs_of(x, 0) == 1
    for number in range(1, most + 1):
        counted.call(x, number)
    assert counted.runs_of(x, 0) == 1


def test_a_known_call_has_the_place_that_called_it(x: fw.Array) -> None:
    lines = set()
    for _ in range(3):
        y = x.sum(axis=1)
        place = places.find(y._recorder.place_of_op(y._handle))
        assert place is not None
        lines.add(str(place.source_line()))
    assert len(lines) == 1
    assert __file__ in lines.pop()


def test_results_of_known_calls_die_once(x: fw.Array) -> None:
    recorder: Recorder = x._recorder
    recorder.take_deaths(recorder.deaths)
    results = [x.sum(axis=1) for _ in range(100)]
    handles = [each._handle for each in results]
    assert recorder.deaths == 0
    del results
    assert sorted(recorder.take_deaths(recorder.deaths).tolist()) == handles


# ---- calls without arrays ----


def test_a_known_creation_is_one_of_the_session_that_was_connected_last() -> None:
    counted = Counted(fw.zeros)
    for _ in range(2):
        session = connect(is_manual=True).session
        results = [counted.call((2, 3)) for _ in range(4)]
        assert {each.session for each in results} == {session}
        assert {each.shape for each in results} == {(2, 3)}


def test_each_thread_records_its_own_creations() -> None:
    with connect().session as session:

        def ones() -> fw.Array:
            return [fw.ones((2, 3)) for _ in range(4)][-1]

        with ThreadPoolExecutor(2) as executor:
            results = [ones(), *[executor.submit(ones).result(timeout=HANGS_S) for _ in range(3)], ones()]
        assert all(each.session is session for each in results)
        for each in results:
            np.testing.assert_array_equal(each.numpy(timeout=HANGS_S), np.ones((2, 3)))


def test_a_known_creation_says_that_the_session_has_ended() -> None:
    session = connect().session
    for _ in range(4):
        fw.zeros(3)
    session.close()
    for _ in range(2):
        with pytest.raises(fw.SessionClosed, match="connected last, and the last one has ended"):
            fw.zeros(3)


def test_a_device_is_checked_in_each_session() -> None:
    sessions = [connect(is_manual=True).session for _ in range(2)]
    x = sessions[0].array(DATA)
    for _ in range(3):
        assert x.to_device(x.device).shape == x.shape
        with pytest.raises(fw.ArgumentError, match="device"):
            x.to_device("another")


# ---- assignments ----


def test_assignments_that_come_again_assign_what_numpy_assigns() -> None:
    with connect().session as session:
        x, expected = session.array(DATA), DATA.copy()
        row = session.array(DATA[0, 0])
        for place in (0, 1, 0, 1, -1):
            x[place] = row
            x[place, 1:, 2] = 0.5
            x[..., 3] = place
            expected[place] = DATA[0, 0]
            expected[place, 1:, 2] = 0.5
            expected[..., 3] = place
        np.testing.assert_array_equal(x.numpy(timeout=HANGS_S), expected)


def test_an_assignment_does_not_change_a_copy_and_all_names_see_it() -> None:
    with connect().session as session:
        x = session.array(DATA)
        same = copy = x
        for _ in range(3):
            copy = x.copy()
            x -= copy
            x[0] = 7.0
            assert x is same
        np.testing.assert_array_equal(copy.numpy(timeout=HANGS_S)[0], np.full((3, 4), 7.0))
        np.testing.assert_array_equal(same.numpy(timeout=HANGS_S)[1], np.zeros((3, 4)))


def test_an_assignment_of_another_thread_is_seen() -> None:
    with connect().session as session:
        x = session.array(DATA)
        x[0] = 1.0

        def assign() -> None:
            for _ in range(3):
                x[0] = 2.0

        with ThreadPoolExecutor(1) as executor:
            executor.submit(assign).result(timeout=HANGS_S)
        np.testing.assert_array_equal(x.numpy(timeout=HANGS_S)[0], np.full((3, 4), 2.0))


def test_an_assignment_in_a_body_to_an_array_from_outside_is_refused(x: fw.Array) -> None:
    for _ in range(3):
        x[0] = 1.0
        x += 1

    def body(i: Any, carry: Any) -> Any:
        x[0] = 1.0
        return carry

    def body_in_place(i: Any, carry: Any) -> Any:
        x.__iadd__(1)
        return carry

    for each in (body, body_in_place):
        with pytest.raises(fw.RequestError, match="cannot assign"):
            fw.fori_loop(2, each, x + 1)


# ---- as functions ----


def test_a_known_call_is_inspected_and_pickled_as_the_function() -> None:
    assert list(inspect.signature(fw.sum).parameters) == ["x", "axis", "dtype", "keepdims", "initial", "where", "out"]
    assert inspect.getdoc(fw.Array.reshape) is not None
    assert fw.Array.sum.__qualname__ == "Array.sum"
    for function in (fw.sum, fw.tanh, fw.empty, fw.Array.sum):
        assert pickle.loads(pickle.dumps(function)) is function  # noqa: S301  # it was pickled here


def test_a_method_that_was_taken_off_its_object_is_called_with_it(x: fw.Array) -> None:
    of_x = x.sum
    assert of_x(axis=1).shape == of_x(1).shape == fw.Array.sum(x, 1).shape == (2, 4)


@pytest.mark.parametrize(
    "call",
    [
        lambda xp, x, count: xp.repeat(x, count),
        lambda xp, x, count: xp.zeros(count),
        lambda xp, x, count: xp.eye(count),
        lambda xp, x, count: xp.roll(x, count),
        lambda xp, x, count: x[:count],
    ],
)
def test_what_follows_from_a_value_that_is_read_is_found_anew(call: Callable[[Any, Any, Any], Any]) -> None:
    with session_in_memory() as session:
        x = session.array(np.arange(3))
        for count in (1, 3, 2, 1):
            result = call(fw, x, session.array(np.int64(count)))
            np.testing.assert_array_equal(result, call(np, np.arange(3), count))
