"""A function whose ops are recorded once gives what it gives when it is called."""

from __future__ import annotations

import gc
import inspect
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fusewire as fw
from fusewire import SessionStats
from fusewire._api.recorded_once.recorded_function import MOST_RECORDINGS
from fusewire._recording.cutting.cutter import LARGEST_SEGMENT_OPS
from tests.client.peer import connect
from tests.patience import HANGS_S

START = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


def test_each_call_computes_anew_and_the_function_is_called_once() -> None:
    calls: list[None] = []

    @fw.function
    def step(x: fw.Array, y: fw.Array) -> fw.Array:
        calls.append(None)
        return fw.tanh(x + y) * 2

    with connect().session as session:
        x, y = session.array(START), session.array(START[:1])
        expected = START
        for _ in range(20):
            x, expected = step(x, y), np.tanh(expected + START[:1]) * 2
        np.testing.assert_allclose(x.numpy(timeout=HANGS_S), expected, rtol=1e-5)
    assert len(calls) == 1


@pytest.mark.parametrize("is_read", [False, True])
def test_later_calls_cost_few_bytes(is_read: bool) -> None:
    session = connect().session
    step = fw.function(lambda x: fw.tanh(x * 2 + 1) - x)

    def run() -> SessionStats:
        x = session.array(START)
        for _ in range(10):
            x = step(x)
            if is_read:
                x.numpy(timeout=HANGS_S)
        x.numpy(timeout=HANGS_S)
        return session.stats

    before, after = run(), run()
    assert after.programs == before.programs
    assert after.sent_bytes - before.sent_bytes < (10 if is_read else 2) * 150


@pytest.mark.parametrize("extra", [lambda x: x, lambda x: x * 0.5 - 1])
def test_calls_one_after_the_other_are_iterations_of_a_loop(extra: Callable[[Any], Any]) -> None:
    session = connect().session
    step = fw.function(lambda x: fw.tanh(x * 2 + 1) - x)

    def run() -> int:
        x, expected = session.array(START), START
        for _ in range(50):
            x, expected = extra(step(x)), extra(np.tanh(expected * 2 + 1) - expected)
        np.testing.assert_allclose(x.numpy(timeout=HANGS_S), expected, rtol=1e-4)
        return session.stats.segments

    before, after = run(), run()
    assert after - before <= 6


def test_a_body_of_more_ops_than_a_segment_of_others_is_one_segment() -> None:
    def long(x: Any) -> Any:
        for number in range(LARGEST_SEGMENT_OPS):
            x = x * 0.5 + number
        return x

    session = connect().session
    step, x = fw.function(long), session.array(START)
    for segments in (1, 2, 3):
        np.testing.assert_allclose(step(x).numpy(timeout=HANGS_S), long(START), rtol=1e-5)
        assert session.stats.segments == segments


@fw.function
def _halve(x: fw.Array) -> fw.Array:
    return x * 0.5 - 0.25


@fw.function
def _mix(x: fw.Array, y: fw.Array) -> tuple[fw.Array, fw.Array]:
    total = x * 0.5 + y
    return total, total - x


HALF, QUARTER = np.float32(0.5), np.float32(0.25)
CALLS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {  # of x and y, with NumPy's twin
    "halve": (lambda x, y: (_halve(x), y), lambda x, y: (x * HALF - QUARTER, y)),
    "mix": (_mix, lambda x, y: (x * HALF + y, x * HALF + y - x)),
    "op": (lambda x, y: (x, y + x), lambda x, y: (x, y + x)),
    "read": (lambda x, y: (x, x._recorder.owner.array(y.numpy(timeout=HANGS_S))), lambda x, y: (x, y)),
}


@given(calls=st.lists(st.tuples(st.sampled_from([*CALLS]), st.booleans()), max_size=60))
@settings(deadline=None, max_examples=60)
def test_calls_among_other_ops_give_what_ops_give(calls: list[tuple[str, bool]]) -> None:
    with connect().session as session:
        pair, expected = (session.array(START), session.array(START)), (START, START)
        kept: list[tuple[fw.Array, Any]] = []
        for name, is_kept in calls:
            ours, twin = CALLS[name]
            pair, expected = ours(*pair), twin(*expected)
            if is_kept:
                kept.append((pair[1], expected[1]))
        for array, value in [*kept, *zip(pair, expected, strict=True)]:
            np.testing.assert_array_equal(array.numpy(timeout=HANGS_S), value)


def test_arguments_and_results_keep_their_form() -> None:
    @fw.function
    def work(pair: tuple[fw.Array, float], *, scale: fw.Array) -> dict[str, Any]:
        return {"sum": pair[0] + scale, "same": pair[0], "static": pair[1], "list": [scale * pair[1]]}

    with connect().session as session:
        x, scale = session.array(START), session.array(START * 3)
        for _ in range(2):
            given = work((x, 2.5), scale=scale)
            np.testing.assert_array_equal(given["sum"].numpy(timeout=HANGS_S), START * 4)
            np.testing.assert_array_equal(given["same"].numpy(timeout=HANGS_S), START)
            np.testing.assert_array_equal(given["list"][0].numpy(timeout=HANGS_S), START * 3 * np.float32(2.5))
            assert given["static"] == 2.5


@pytest.mark.parametrize("value", [1, 1.0, True, -0.0, 0.0, np.float32(2), np.float16(-0.0)])
def test_other_values_of_other_types_are_other_recordings(value: float) -> None:
    seen: list[Any] = []

    @fw.function
    def work(x: fw.Array, value: float) -> fw.Array:
        seen.append(value)
        return x * value

    with connect().session as session:
        x = session.array(START)
        for each in (2.0, value, 2.0, value):
            work(x, each)
    assert [repr(each) for each in seen] == ["2.0", repr(value)]


@pytest.mark.parametrize("nan", [float("nan"), np.float32("nan")])
def test_a_nan_is_the_value_that_it_was(nan: float) -> None:
    calls: list[float] = []

    @fw.function
    def work(x: fw.Array, value: float) -> fw.Array:
        calls.append(value)
        return x * value

    with connect().session as session:
        x = session.array(START)
        for _ in range(2):
            assert np.isnan(work(x, type(nan)("nan")).numpy(timeout=HANGS_S)).all()
    assert len(calls) == 1


@pytest.mark.parametrize("kind", [float, np.float64, np.float32, np.float16])
def test_a_negative_zero_is_another_value_than_zero(kind: type[float]) -> None:
    work = fw.function(lambda x, value: x * value)
    with connect().session as session:
        x = session.array(np.ones(3, np.float32))
        signs = [np.signbit(work(x, kind(value)).numpy(timeout=HANGS_S)).any() for value in (0.0, -0.0, 0.0)]
    assert signs == [False, True, False]


def test_an_array_that_is_returned_twice_is_one_array_in_each_call() -> None:
    @fw.function
    def twice(x: fw.Array) -> tuple[fw.Array, fw.Array]:
        y = x + 1
        return y, y

    with connect().session as session:
        x = session.array(START)
        for _ in range(3):
            one, other = twice(x)
            assert one is other
            del one
            (x * 2).numpy(timeout=HANGS_S)
            np.testing.assert_array_equal(other.numpy(timeout=HANGS_S), START + 1)
            del other


def test_arrays_of_other_threads_die_after_calls_that_took_them() -> None:
    peer = connect()
    work = fw.function(lambda x: x * 2)
    arrays = [peer.session.array(START) + number for number in range(5)]
    handles = [array._handle for array in arrays]

    def call() -> None:
        for array in arrays:
            work(array).numpy(timeout=HANGS_S)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join(20)
    arrays.clear()
    peer.session.array(START).numpy(timeout=HANGS_S)
    peer.session._sender.send_frees()
    peer.session.array(START).numpy(timeout=HANGS_S)
    assert not set(handles).intersection(peer.server.values)
    peer.session.close()


def test_keys_of_other_types_are_other_recordings() -> None:
    work = fw.function(lambda x, scales: x * next(iter(scales)))
    with connect().session as session:
        x = session.array(np.ones(3, np.int32))
        assert [work(x, {key: 0}).dtype for key in (1, 1.0, 1)] == [np.int32, np.float64, np.int32]


def test_numpy_arguments_are_uploaded_at_each_call() -> None:
    work = fw.function(lambda x, y: x + y)
    with connect().session as session:
        x = session.array(START)
        for factor in (1, 2, 3):
            np.testing.assert_array_equal(work(x, START * factor).numpy(timeout=HANGS_S), START * (factor + 1))


def test_arrays_of_the_surroundings_stay_alive_with_the_recording() -> None:
    with connect().session as session:
        held = [session.array(START * 5)]
        work = fw.function(lambda x: x + held[0] + session.array(START))
        x = session.array(START)
        work(x)
        held.clear()
        gc.collect()
        np.testing.assert_allclose(work(x).numpy(timeout=HANGS_S), START * 7, rtol=1e-6)


def test_another_session_and_another_shape_are_recorded_for_themselves() -> None:
    calls = []

    @fw.function
    def work(x: fw.Array) -> fw.Array:
        calls.append(x.shape)
        return x * 2

    for _ in range(2):
        with connect().session as session:
            for given in (START, START[:1], START):
                np.testing.assert_array_equal(work(session.array(given)).numpy(timeout=HANGS_S), given * 2)
    assert len(calls) == 4


def test_a_recording_serves_other_threads() -> None:
    work = fw.function(lambda x: fw.tanh(x) * 2)
    with connect().session as session:
        x = session.array(START)
        mine = work(x).numpy(timeout=HANGS_S)
        theirs: list[Any] = []
        thread = threading.Thread(target=lambda: theirs.append(work(x).numpy(timeout=HANGS_S)))
        thread.start()
        thread.join(20)
        np.testing.assert_array_equal(theirs[0], mine)


def test_no_more_recordings_are_kept_than_a_few() -> None:
    calls = []

    @fw.function
    def work(x: fw.Array, number: int) -> fw.Array:
        calls.append(number)
        return x + number

    with connect().session as session:
        x = session.array(START)
        for number in [*range(MOST_RECORDINGS + 1), MOST_RECORDINGS, 0]:
            work(x, number)
    assert calls == [*range(MOST_RECORDINGS + 1), 0]


def test_within_a_body_a_recorded_function_is_called_as_it_is() -> None:
    inner = fw.function(lambda x: x * 2)
    outer = fw.function(lambda x: inner(x) + 1)
    with connect().session as session:
        x = session.array(START)
        np.testing.assert_array_equal(outer(x).numpy(timeout=HANGS_S), START * 2 + 1)
        np.testing.assert_array_equal(fw.fori_loop(3, lambda i, y: inner(y), x).numpy(timeout=HANGS_S), START * 8)


def test_a_function_without_arrays_in_its_result_is_refused() -> None:
    with connect().session as session, pytest.raises(fw.ArgumentError, match="returns no array"):
        fw.function(lambda x: 3)(session.array(START))


def test_an_argument_that_cannot_be_compared_is_refused() -> None:
    with connect().session as session, pytest.raises(fw.ArgumentError, match="neither an array nor hashable"):
        fw.function(lambda x, y: x)(session.array(START), {1, 2})


def test_a_value_cannot_be_read_in_the_function() -> None:
    with connect().session as session, pytest.raises(fw.RequestError, match="asks for a value"):
        fw.function(lambda x: x if float(x.sum()) > 0 else -x)(session.array(START))


def test_results_of_calls_die_as_others_do() -> None:
    peer = connect(is_manual=True)
    work = fw.function(lambda x: x * 2)
    x = peer.session.array(START)
    for _ in range(5):
        x = work(x)
        peer.session.flush_all(x._recorder)
        peer.session._sender.send_frees()
        peer.transport.run_once()
        assert peer.server.values.keys() == {x._handle}


def test_an_argument_to_which_it_assigns_has_its_new_value_after_each_call() -> None:
    @fw.function
    def shift(x: fw.Array, y: fw.Array) -> fw.Array:
        x[0] = x[1] + y[0]
        return x * 2

    with connect().session as session:
        x, y, expected = session.array(START), session.array(START), START.copy()
        same = x
        for _ in range(3):
            doubled = shift(x, y)
            expected[0] = expected[1] + START[0]
            np.testing.assert_array_equal(same.numpy(timeout=HANGS_S), expected)
            np.testing.assert_array_equal(doubled.numpy(timeout=HANGS_S), expected * 2)
        np.testing.assert_array_equal(y.numpy(timeout=HANGS_S), START)


def test_a_function_that_only_assigns_needs_no_result() -> None:
    @fw.function
    def reset(state: dict[str, fw.Array]) -> None:
        state["x"][:, 1] = 0

    with connect().session as session:
        expected = START.copy()
        expected[:, 1] = 0
        for _ in range(2):
            state = {"x": session.array(START)}
            assert reset(state) is None
            np.testing.assert_array_equal(state["x"].numpy(timeout=HANGS_S), expected)


def test_an_argument_that_it_changes_and_returns_is_the_array_of_the_caller() -> None:
    @fw.function
    def clear(x: fw.Array) -> tuple[fw.Array, fw.Array]:
        x[0] = 0
        return x, x

    with connect().session as session:
        for _ in range(2):
            x = session.array(START)
            first, second = clear(x)
            assert first is x
            assert second is x
            assert x[0].tolist() == [0, 0, 0]


def test_an_argument_of_another_thread_gets_its_new_value() -> None:
    @fw.function
    def clear(x: fw.Array) -> None:
        x[0] = 0

    with connect().session as session:
        for _ in range(2):
            made: list[fw.Array] = []
            thread = threading.Thread(target=lambda made=made: made.append(session.array(START) + 1))
            thread.start()
            thread.join(10)
            clear(made[0])
            assert made[0].tolist() == [[0, 0, 0], (START[1] + 1).tolist()]


def test_a_numpy_array_to_which_it_assigns_stays_as_it_is() -> None:
    @fw.function
    def clear(x: fw.Array) -> fw.Array:
        x[0] = 0
        return x

    with connect().session:
        for _ in range(2):
            given = START.copy()
            assert clear(given)[0].tolist() == [0, 0, 0]  # type: ignore[arg-type]  # a NumPy array is uploaded
            np.testing.assert_array_equal(given, START)


def test_the_value_before_the_assignment_dies_with_the_call() -> None:
    @fw.function
    def clear(x: fw.Array) -> None:
        x[0] = 0

    peer = connect(is_manual=True)
    x = peer.session.array(START)
    for _ in range(5):
        clear(x)
        peer.session.flush_all(x._recorder)
        peer.session._sender.send_frees()
        peer.transport.run_once()
        assert peer.server.values.keys() == {x._handle}


def test_what_a_function_holds_can_be_pickled_after_its_calls() -> None:
    """Libraries that send functions of a notebook to other processes pickle what these hold."""

    @fw.function
    def double(x: fw.Array) -> fw.Array:
        return x * 2

    with connect().session as session:
        double(session.array(START))
        held = inspect.getclosurevars(double).nonlocals["recordings"]
        assert len(held) == 1
        assert len(pickle.loads(pickle.dumps(held))) == 0  # noqa: S301 - our own bytes
