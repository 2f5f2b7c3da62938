"""The iterations of a loop with very many values: none of them is searched for among all."""

from __future__ import annotations

import time

from fusewire_protos.frames import Repetition
from fusewire_protos.programs.program import build
from fusewire_server.sessions.iterations import Iterations
from fusewire_server.sessions.rows import fail_from_inputs
from fusewire_server.sessions.session import Row, Value, ValueState
from tests.server.parts import VECTOR, entry_of, op, queued_row, session
from tests.server.tables import FAULT

MANY = 30_000
WITHIN_S = 1.5  # processor time: it takes some 0.1 s, and a search for each of MANY values takes 2.5 s and more


def failed(handle: int) -> Value:
    value = Value(handle, VECTOR, ValueState.FAILED)
    value.failure = FAULT
    return value


def row_of(iterations: Iterations, inputs: list[Value]) -> Row:
    row = queued_row(session(), entry_of(iterations.program))
    row.iterations, row.inputs = iterations, inputs
    row.outputs = iterations.outputs
    return row


def test_failed_values_that_an_input_steps_through_are_found_without_a_search_for_each() -> None:
    program = build([VECTOR], [], [op("negative", 0)], (0,))
    ring = [Value(1, VECTOR, ValueState.ISSUED, op_index=0)]
    row = row_of(
        Iterations(program, Repetition(MANY, 0, (1,)), [ring], {0: tuple(range(MANY))}),
        [failed(handle) for handle in range(MANY)],
    )
    began_s = time.process_time()
    fail_from_inputs(row, [])
    assert time.process_time() - began_s < WITHIN_S
    assert ring[0].failure is not None
    assert {value.state for value in row.inputs} == {ValueState.STAND_IN}


def test_results_that_are_carried_are_found_without_a_search_for_each() -> None:
    ops = [op("negative", number) for number in range(MANY)]
    carried = [(number, 2 * MANY - 1 - number) for number in range(MANY)]
    program = build([VECTOR] * MANY, [], ops, tuple(range(MANY)), carried)
    rings = [[Value(number, VECTOR, ValueState.ISSUED)] for number in range(MANY)]
    row = row_of(
        Iterations(program, Repetition(2, 0, (0,) * MANY), rings, {}),
        [Value(MANY + number, VECTOR, ValueState.READY) for number in range(MANY)],
    )
    began_s = time.process_time()
    taken = row.at(1).inputs
    assert time.process_time() - began_s < WITHIN_S
    assert taken == [ring[0] for ring in reversed(rings)]
