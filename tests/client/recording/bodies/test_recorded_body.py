"""A body that is recorded again puts on the tape what its ops would put there."""

from __future__ import annotations

from collections.abc import Callable

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

import fusewire as fw
from fusewire._api.array import Array
from fusewire._recording.bodies.body import recording_body
from fusewire._recording.bodies.recorded_body import RecordedBody
from fusewire._recording.record_op import repeat
from fusewire._recording.recorder import Recorder
from fusewire._recording.tape import Integers
from tests.client.loops import H
from tests.client.peer import connect

STEPS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 7), st.floats(-2, 2, width=16)), min_size=1, max_size=12)


OPS: list[Callable[[Array, Array, float], Array]] = [
    lambda one, other, scalar: one + other,
    lambda one, other, scalar: one * scalar,
    lambda one, other, scalar: fw.tanh(other),
    lambda one, other, scalar: one - other,
]
Call = Callable[[Array, Array], list[Array]]


def computed(steps: list[tuple[int, int, float]], x: Array, y: Array) -> list[Array]:
    """Runs some ops on earlier results. Returns the last result, and another one."""
    values = [x, y]
    for kind, place, scalar in steps:
        one, other = values[place % len(values)], values[(place + 1) % len(values)]
        values.append(OPS[kind](one, other, scalar))
    return [values[-1], values[2]] if len(values) > 3 else [values[-1]]


def body_of(recorder: Recorder, call: Call, x: Array) -> tuple[RecordedBody, list[int]]:
    """Records a body of two parameters. Returns it, and for each of its inputs the number of the parameter."""
    with recording_body(recorder) as recording:
        parameters = [recording.parameter(Array, x._spec) for _ in range(2)]
        results = call(*parameters)
        handles = [each._handle for each in parameters]
        places = [handles.index(handle) for handle in recorder.inputs_of_body()]
        return recorder.recorded_body([each._handle for each in results]), places


def records(recorder: Recorder, first: int) -> Integers:
    return recorder.between(first, recorder.next_number)


@given(steps=STEPS)
@settings(deadline=None)
def test_the_records_and_values_are_those_of_the_ops(steps: list[tuple[int, int, float]]) -> None:
    x = connect(is_manual=True).session.array(H)
    y, recorder = x + 1, x._recorder
    body, places = body_of(recorder, lambda x, y: computed(steps, x, y), x)
    first = recorder.next_number
    plain = computed(steps, x, y)
    expected = records(recorder, first)
    values = recorder.values_of(expected)
    again = recorder.next_number
    results = repeat(Array, recorder, body, [[x, y][place]._handle for place in places], body.values, [])
    found = records(recorder, again)
    is_result = (expected >= first) & (expected < again)
    moved = expected + (again - first) * is_result
    assert found[found >= 0].tolist() == moved[moved >= 0].tolist()
    assert recorder.values_of(found) == values
    by_handle = {each._handle - first: each._spec for each in plain}
    assert {each._handle - again: each._spec for each in results} == by_handle
    assert recorder.repeats == [(again, body)]
    assert [recorder.place_of_op(again + op) for op in range(len(body.places))] == list(body.places)


def test_results_that_are_not_handed_out_are_dead_at_once() -> None:
    x = connect(is_manual=True).session.array(H)
    recorder = x._recorder
    body, _ = body_of(recorder, lambda x, y: [fw.tanh(x + y) * 2], x)
    recorder.take_deaths(recorder.deaths)
    (result,) = repeat(Array, recorder, body, [x._handle, x._handle], body.values, [])
    assert recorder.take_deaths(recorder.deaths).tolist() == [result._handle - 2, result._handle - 1]


@pytest.mark.parametrize(("inputs", "values"), [(1, 1), (2, 0), (2, 2)])
def test_too_few_or_too_many_inputs_or_values_are_refused(inputs: int, values: int) -> None:
    x = connect(is_manual=True).session.array(H)
    recorder = x._recorder
    body, _ = body_of(recorder, lambda x, y: [(x + y) * 2], x)
    first = recorder.next_number
    with pytest.raises(ValueError, match="of a body"):
        repeat(Array, recorder, body, [x._handle] * inputs, [2.0] * values, [])
    assert (recorder.next_number, recorder.repeats) == (first, [])
