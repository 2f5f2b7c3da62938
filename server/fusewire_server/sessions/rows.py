"""Queues rows once their inputs are issued, and fails the results that depend on failed inputs. Pure.

A value is issued once the row that computes it is in its session's queue, or once its uploaded bytes have arrived. A
row joins the queue when each of its inputs is issued or has failed; until then the row is held back. When a value
fails, only the results that depend on this value fail. For the other results of a row, stand-ins replace the failed
inputs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice

from fusewire_protos.errors import BY_NAME
from fusewire_protos.in_steps import finished
from fusewire_protos.ops.shapes import Spec
from fusewire_server.programs.dependent_results import dependent_ops
from fusewire_server.programs.failure import Failure
from fusewire_server.sessions.effects import Effects
from fusewire_server.sessions.iterations import failure_causes, first_uses
from fusewire_server.sessions.session import PendingFetch, Row, Session, Value, ValueState, failure_of
from fusewire_server.sessions.values import forget_if_dead, make_ready, release_if_dead

MOST_CANCELLED = 512  # results of a cancelled row that fail in one step


def queue_row(row: Row) -> None:
    """Queues a row now, or later when its last input is issued or has failed."""
    awaited = {value for value in row.inputs if value.state is ValueState.AWAITED}
    if not awaited:
        _issue(row)
        return
    row.waits_for = len(awaited)
    row.session.held_back.add(row)
    for value in awaited:
        if value.waiting is None:
            value.waiting = {}
        value.waiting[row] = None


def bring_upload(session: Session, value: Value, reads: list[PendingFetch], released: list[Value]) -> None:
    """Makes an uploaded value ready, because its bytes have arrived, and queues the rows that waited for the value.

    Fetches of the value join `reads`.
    """
    make_ready(value, reads)
    _issue_waiting(value)
    release_if_dead(session, value, released)


def fail_value(session: Session, value: Value, failure: Failure) -> None:
    """Fails a value: answers its fetches with the failure, and queues the rows that waited for the value.

    These rows run for the results that do not depend on the value.
    """
    value.state = ValueState.FAILED
    value.failure = failure
    if value.fetches:
        for pending in value.fetches.values():
            value.readers -= 1
            session.answer_failure(pending.fetch, failure)
        value.fetches = None
    forget_if_dead(session, value)
    if value.waiting:
        _issue_waiting(value)


def fail_row(row: Row, failure: Failure, most: int | None = None) -> bool:
    """Fails the results of a row that have not failed yet, at most `most` of them. Returns whether all have failed."""
    program = row.entry.program
    left = filter(_has_not_failed, row.outputs)
    for value in islice(left, most):
        fail_value(row.session, value, failure.of_result(program, row.base, value.op_index))
    return next(left, None) is None


def _has_not_failed(value: Value) -> bool:
    return value.state is not ValueState.FAILED


def fail_dependent(row: Row, failure: Failure, ops: Sequence[int]) -> None:
    """Fails those results of a row that depend on some of its ops, if they have not failed yet.

    `failure` is of the row; the failure of a result names the op that it depends on.
    """
    program = row.entry.program
    causes = dependent_ops(program, ops)
    named = {op: failure.of_result(program, row.base, op) for op in ops}
    for value in row.outputs:
        if value.op_index in causes and value.state is not ValueState.FAILED:
            fail_value(row.session, value, named[causes[value.op_index]])


def drop_row(row: Row, failure: Failure, released: list[Value]) -> None:
    """Gives up a row: fails its results, stops counting the row as a reader of its inputs, and returns its credit."""
    fail_row(row, failure)
    for value in row.inputs:
        value.readers -= 1
        release_if_dead(row.session, value, released)
    if row.has_begun:
        released += row.outputs  # which have their memory since the first iteration
    row.session.end_row(row)


def cancel_rows(session: Session, effects: Effects) -> bool:
    """Gives up rows of a session that have not been submitted: `MOST_CANCELLED` results of one row.

    Returns whether all such rows are given up. Until they are, the session has to be asked for nothing else.
    """
    held_back = session.held_back
    if held_back:
        row = held_back.pop()
        for value in row.inputs:
            if value.waiting:
                value.waiting.pop(row, None)
        session.cancelled.append(row)
        return False
    session.cancelled.extend(session.queue)
    session.queue.clear()
    if session.cancelled:
        row = session.cancelled[0]
        failure = Failure(BY_NAME["cancelled"], "given up before it was submitted", row.base, 0)
        if fail_row(row, failure, MOST_CANCELLED):
            effects.failures.append(failure)
            drop_row(row, failure, effects.released)
            session.cancelled.popleft()
    return not session.cancelled


def fail_from_inputs(row: Row, released: list[Value]) -> None:
    """Fails the results that depend on failed inputs. The engine calls this just before it submits the row.

    An input may have failed after the row was queued. The other results are computed; stand-ins replace the failed
    inputs.
    """
    failed = {
        position: failure_of(value) for position, value in enumerate(row.inputs) if value.state is ValueState.FAILED
    }
    if failed:
        _fail_dependent_results(row, failed, released)


def failures_of_results(
    row: Row, causes: Mapping[int, tuple[int, int]], failure_of_input: Callable[[int], Failure]
) -> Iterator[tuple[Value, Failure]]:
    """Yields the results of a row that depend on failed inputs, each with its failure.

    `causes` is what `failure_causes` returns. In a loop, the results of iterations before the first that depends on a
    failed input are computed.
    """
    program = row.entry.program
    for output, iteration in row.results():
        if output.op_index in causes and output.state is not ValueState.FAILED:
            first, position = causes[output.op_index]
            if first <= iteration:
                yield output, failure_of_input(position).of_result(program, row.base, output.op_index)


def stand_in(spec: Spec) -> Value:
    """Makes a value that replaces the failed inputs with this spec in one row. The value belongs to no session."""
    value = Value(0, spec, ValueState.STAND_IN)
    value.is_named = False
    return value


def _fail_dependent_results(row: Row, failed: Mapping[int, Failure], released: list[Value]) -> None:
    """Replaces failed inputs, and fails the results that depend on them. `failed`: position of an input -> failure."""
    stand_in_of = cache(stand_in)
    stepped = {} if row.iterations is None else row.iterations.stepped
    uses = first_uses(stepped, failed)
    for position in failed:
        value = row.inputs[position]
        _, number = uses[position]
        row.inputs[position] = stand_in_of(row.entry.program.inputs[number])
        value.readers -= 1
        release_if_dead(row.session, value, released)
    causes = finished(failure_causes(row.entry.program, stepped, failed))
    for value, failure in failures_of_results(row, causes, failed.__getitem__):
        fail_value(row.session, value, failure)


def _issue(row: Row) -> list[Value]:
    """Queues a row. Returns the results that are now issued."""
    row.session.queue.append(row)
    issued = [value for value in row.outputs if value.state is ValueState.AWAITED]
    for value in issued:
        value.state = ValueState.ISSUED
    return issued


def _issue_waiting(value: Value) -> None:
    """Queues the rows that waited only for this value, then the rows that waited only for results of those, and so on.

    A loop does this instead of recursion, because a chain of rows may be long.
    """
    settled = deque([value])
    while settled:
        following = settled.popleft()
        waiting, following.waiting = following.waiting, None
        for row in waiting or ():
            settled += _settle(row)


def _settle(row: Row) -> list[Value]:
    """Notes that one input of a row is issued or has failed. Queues the row if it waits for no other input.

    Returns the values that are now issued.
    """
    row.waits_for -= 1
    if row.waits_for:
        return []
    row.session.held_back.remove(row)
    return _issue(row)
