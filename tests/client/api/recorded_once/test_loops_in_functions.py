"""A recorded function that holds loops gives what it gives when it is called."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fusewire as fw
from fusewire import RequestError
from fusewire._recording.bodies.function_body import recording_function
from tests.client.peer import connect
from tests.patience import HANGS_S

START = np.linspace(-1, 1, 6).reshape(2, 3)
OTHER = np.linspace(0.5, 2, 6).reshape(2, 3)

# Each part of a function takes two values and returns two. `loop` is `fori_loop` or the same in Python.
Values = tuple[Any, Any]
Loop = Callable[[int, Callable[[Any, Any], Any], Any], Any]
PARTS: dict[str, Callable[[Any, Loop, Values], Values]] = {
    "ops": lambda xp, _, v: (xp.tanh(v[0] + v[1]), v[0] * 0.5),
    "swap": lambda _, __, v: (v[1], v[0]),
    "loop": lambda xp, loop, v: loop(3, lambda i, c: (xp.sin(c[0]) + c[1], c[1] * 0.5 + i), v),
    "one of two": lambda xp, loop, v: (loop(4, lambda i, c: xp.cos(c) * v[1], v[0]), v[1]),  # v[1] is from outside
    "twice the same": lambda _, loop, v: loop(2, lambda i, c: (c[0] + c[1], c[1] * 0.5), (v[0], v[0])),
    "from the surroundings": lambda _, loop, v: (loop(2, lambda i, c: c * OTHER - v[0], v[1]), v[0]),
    "slices": lambda xp, loop, v: (v[0] + loop(3, lambda i, c: c + v[1][:, i], xp.ones(2))[:, None], v[1]),
    "unchanged": lambda _, loop, v: loop(2, lambda i, c: (c[1], c[1]), v),
    "no iterations": lambda _, loop, v: loop(0, lambda i, c: c, v),
}


def in_python(n: int, body: Callable[[Any, Any], Any], carry: Any) -> Any:
    for i in range(n):
        carry = body(i, carry)
    return carry


@given(parts=st.lists(st.sampled_from([*PARTS]), min_size=1, max_size=5), calls=st.integers(2, 4))
@settings(deadline=None, max_examples=60)
def test_any_loops_among_ops_give_what_numpy_gives(parts: list[str], calls: int) -> None:
    names: list[None] = []

    def call(xp: Any, loop: Loop, values: Values) -> Values:
        for part in parts:
            values = PARTS[part](xp, loop, values)
        return values

    @fw.function
    def recorded(x: Any, y: Any) -> Values:
        names.append(None)
        return call(fw, fw.fori_loop, (x, y))

    with connect().session as session:
        given, expected = (session.array(START), session.array(OTHER)), (START, OTHER)
        for _ in range(calls):
            given, expected = recorded(*given), call(np, in_python, expected)
        for one, other in zip(given, expected, strict=True):
            np.testing.assert_allclose(one.numpy(timeout=HANGS_S), other, rtol=1e-9)
    assert len(names) == 1


def test_a_later_call_sends_no_program_and_few_bytes() -> None:
    session = connect().session
    step = fw.function(lambda x: fw.tanh(fw.fori_loop(1000, lambda i, c: fw.sin(c) * 0.9 + i, x + 1)))

    def run() -> Any:
        step(session.array(START)).numpy(timeout=HANGS_S)
        return session.stats

    run()
    before, after = run(), run()
    assert after.programs == before.programs
    assert after.sent_bytes - before.sent_bytes < START.nbytes + 400


def test_an_argument_to_which_it_assigns_before_and_behind_the_loop_has_its_new_value() -> None:
    @fw.function
    def step(x: fw.Array) -> Any:
        x[0] = 1
        total = fw.fori_loop(2, lambda i, c: c + x.sum(), x[1, 0])
        x[1] = total
        return total

    with connect().session as session:
        x = session.array(np.zeros((2, 3)))
        for expected in (6.0, 48.0):
            assert float(step(x)) == expected
            np.testing.assert_array_equal(x.numpy(timeout=HANGS_S), [[1, 1, 1], [expected] * 3])


def test_an_upload_of_the_function_stays_alive_with_the_recording() -> None:
    with connect().session as session:
        step = fw.function(lambda x: fw.fori_loop(2, lambda i, c: c + session.array(START), x * session.array(OTHER)))
        for _ in range(3):
            np.testing.assert_allclose(step(session.array(START)).numpy(timeout=HANGS_S), START * OTHER + 2 * START)


def test_a_body_of_the_loop_cannot_assign_to_an_array_of_the_function() -> None:
    def call(x: fw.Array) -> Any:
        y = x + 1

        def body(_: Any, carry: Any) -> Any:
            y[0] = 0.0
            return carry

        return fw.fori_loop(2, body, x)

    with connect().session as session, pytest.raises(RequestError, match="from outside"):
        fw.function(call)(session.array(START))


def test_a_loop_within_a_loop_of_a_function_is_refused_and_the_session_goes_on() -> None:
    def inner(_: Any, carry: Any) -> Any:
        return fw.fori_loop(2, lambda i, c: c + 1, carry)

    with connect().session as session:
        x = session.array(START)
        with pytest.raises(RequestError, match="another loop"):
            fw.function(lambda x: fw.fori_loop(2, inner, x))(x)
        np.testing.assert_array_equal((x + 1).numpy(timeout=HANGS_S), START + 1)


@pytest.mark.parametrize("debug", [False, True])
def test_a_function_that_catches_the_error_of_a_loop_goes_on(debug: bool) -> None:
    def call(x: fw.Array) -> Any:
        y = x * 2
        with pytest.raises(ZeroDivisionError):
            fw.fori_loop(2, lambda i, c: c + 1 / 0, y)
        return y + fw.fori_loop(3, lambda i, c: c + 1, x)

    with connect(debug=debug).session as session:
        step = fw.function(call)
        for _ in range(2):
            np.testing.assert_allclose(step(session.array(START)).numpy(timeout=HANGS_S), START * 3 + 3)


def test_a_value_of_a_body_that_its_loop_does_not_carry_is_refused() -> None:
    leaked: list[fw.Array] = []

    def leak(_: fw.Array, c: fw.Array) -> fw.Array:
        leaked.append(c * 2)
        return c + 1

    def call(x: fw.Array) -> Any:
        leaked.clear()
        return fw.fori_loop(2, leak, x) + leaked[0]

    with connect().session as session, pytest.raises(fw.RequestError, match="not in the loop's carry"):
        fw.function(call)(session.array(START))


def test_an_upload_of_a_function_stays_though_its_death_was_taken_while_the_function_was_recorded() -> None:
    peer = connect()

    def call(x: fw.Array) -> Any:
        y = x + peer.session.array(START)
        peer.session._sender.send_frees()  # as the I/O thread does now and then
        return y * 2

    with peer.session as session:
        step, x = fw.function(call), session.array(START)
        for _ in range(3):
            np.testing.assert_allclose(step(x).numpy(timeout=HANGS_S), START * 4)


def test_a_function_in_a_function_and_in_a_gradient_may_hold_a_loop() -> None:
    inner = fw.function(lambda x: fw.fori_loop(3, lambda i, c: c * x + i, x))
    gradient = fw.grad(lambda x: inner(x).sum())
    step = fw.function(lambda x: (inner(x) + 1, gradient(x)))
    with connect().session as session:
        for _ in range(2):
            value, slope = step(session.array(START))
            np.testing.assert_allclose(value.numpy(timeout=HANGS_S), START**4 + START + 3)
            np.testing.assert_allclose(slope.numpy(timeout=HANGS_S), 4 * START**3 + 1)
        np.testing.assert_allclose(gradient(session.array(START)).numpy(timeout=HANGS_S), 4 * START**3 + 1)


def test_a_result_before_the_loop_is_pulled_back_behind_it() -> None:
    def call(x: fw.Array) -> Any:
        y, pull_back = fw.vjp(lambda x: x * x, x)
        return pull_back(fw.fori_loop(2, lambda i, c: c + 1, y))[0]

    with connect().session as session:
        step = fw.function(call)
        for _ in range(2):
            np.testing.assert_allclose(
                step(session.array(START)).numpy(timeout=HANGS_S), 2 * START * (START**2 + 2), rtol=1e-12
            )


def test_arguments_of_another_thread_are_taken_before_and_behind_the_loop() -> None:
    step = fw.function(lambda x, y: fw.fori_loop(2, lambda i, c: c * y, x + y) + y)
    with connect().session as session:
        made: list[fw.Array] = []
        for _ in range(2):
            thread = threading.Thread(target=lambda: made.append(session.array(OTHER) * 1))
            thread.start()
            thread.join(HANGS_S)
            result = step(session.array(START), made.pop())
            np.testing.assert_allclose(result.numpy(timeout=HANGS_S), (START + OTHER) * OTHER**2 + OTHER)


def test_results_of_stages_and_parameters_die_as_others_do() -> None:
    with connect().session as session:
        step = fw.function(lambda x: fw.fori_loop(2, lambda i, c: c + i, x * 2) * 3)
        x = session.array(START)
        recorder = x._recorder
        step(x).numpy(timeout=HANGS_S)
        before = len(recorder._unknown_to_server)
        for _ in range(10):
            step(x).numpy(timeout=HANGS_S)
        assert len(recorder._unknown_to_server) == before


def test_a_loop_whose_results_nobody_takes_is_left_out() -> None:
    with connect().session as session:
        x = session.array(START)
        with recording_function(x._recorder) as recording:
            fw.fori_loop(2, lambda i, c: c + 1, x)
            y = x * 2
            stages = recording.end([y._handle])
        assert [len(stage.body.signatures) for stage in stages] == [1]


def test_indices_in_and_around_the_loop_are_checked() -> None:
    def call(x: fw.Array, i: fw.Array) -> Any:
        return x[i[0]] + fw.fori_loop(2, lambda _, c: c + x[i[1]], x[i[2]])

    with connect(debug=True).session as session:
        step, x = fw.function(call), session.array(np.arange(4.0))
        assert float(step(x, session.array([1, 2, 3]))) == 1 + 3 + 2 * 2
        for indices in ([9, 1, 1], [1, 9, 1], [1, 1, 9]):
            with pytest.raises(IndexError, match="out of range for an axis of length 4"):
                step(x, session.array(indices)).numpy(timeout=HANGS_S)
