"""Applies a segment: binds its program to the session's values, and queues a row or fails the results. Pure."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from functools import cache, partial
from itertools import repeat
from typing import TypeVar

from fusewire_protos.credit import Amount, cost_of
from fusewire_protos.errors import BY_NAME, CaseError
from fusewire_protos.frames import MAX_ITERATIONS, NO_REPETITION, Repetition, Segment
from fusewire_protos.in_steps import InSteps
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs.program import Program
from fusewire_server.programs.failure import Failure
from fusewire_server.programs.program_table import Needs, PlanState
from fusewire_server.sessions.entries.failed_results import fail_some, refuse_results
from fusewire_server.sessions.entries.frame import Frame, Unfinished, begin, go_on
from fusewire_server.sessions.entries.loop import (
    check_handles,
    check_steps,
    input_specs,
    iterations_of,
    needs_of,
    stepped_inputs,
)
from fusewire_server.sessions.entries.validation import dying_handles, scalars_of, starts_of
from fusewire_server.sessions.iterations import failure_causes
from fusewire_server.sessions.rows import failures_of_results, queue_row, stand_in
from fusewire_server.sessions.session import Row, Session, Value, ValueState
from fusewire_server.sessions.values import check_quota, first_beyond_quota, free_handles, mint, value_of

# Position of an input that does not fit -> the spec of the input's value, the failure of its handle, or None if the
# handle names nothing.
Misfits = Mapping[int, Spec | Failure | None]

# Replaces an input that does not fit until the row has a stand-in of the right spec.
_ABSENT = stand_in(Spec(dtypes.uint8, (0,)))

MOST_UNPACKED = 256  # inputs of a segment in one step

T = TypeVar("T")

_ONE_SEGMENT = Amount(0, 0, 1)  # taken by a segment that does not say what it keeps


def take_segment(frame: Frame, segment: Segment) -> Unfinished | None:
    """Queues a row of the segment's program.

    If the inputs, the bindings or the program are bad, fails results instead. Returns the steps that are left, or None
    if there are none. Raises CaseError for a protocol case.
    """
    if frame.session.packed.count and len(segment.all_inputs) > MOST_UNPACKED:
        return begin(_take_unpacked(frame, segment))
    return _take(frame, segment)


def _take_unpacked(frame: Frame, segment: Segment) -> Generator[None, Frame, None]:
    """Unpacks the inputs of a segment, `MOST_UNPACKED` in a step, before the segment is taken."""
    handles = [handle for handle in segment.all_inputs if type(handle) is int]
    for first in range(0, len(handles), MOST_UNPACKED):
        for handle in handles[first : first + MOST_UNPACKED]:
            value_of(frame.session, handle)
        frame = yield
    left = _take(frame, segment)
    while left is not None:
        frame = yield
        left = go_on(frame, left)


def _take(frame: Frame, segment: Segment) -> Unfinished | None:
    session, repetition = frame.session, segment.repetition
    entry = session.programs.get(segment.program)
    if entry is None:
        _take_rejected(frame, segment)
        return None
    program, amount = entry.program, _ONE_SEGMENT
    check_handles(segment, program.live)
    try:
        needs = needs_of(repetition, entry, session.credit)
        amount = needs.amount
        _check_inputs(segment, program)
        _check_room(frame, program, needs)
        scalars = scalars_of(program, segment.scalars)
        starts = starts_of(program, segment.starts)
        if repetition is not NO_REPETITION:
            check_steps(segment, program, scalars, starts)
    except CaseError as error:
        failure = Failure.of(error, segment.base)
        frame.effects.failures.append(failure)
        refuse_results(frame, segment, failure, entry.outline, amount)
        return None
    row = Row(session, entry, segment.base, [], [], scalars, starts, frame.arrival.now_ns, amount)
    row.inputs, misfits = _inputs(session, segment.all_inputs, input_specs(repetition, program))
    if misfits:
        return begin(_take_misfits(frame, segment, row, misfits))
    _admit(frame, segment, row)
    _count_use(frame, row)
    queue_row(row)
    return None


def failure_of_unknown(handle: int, base: int) -> Failure:
    """Returns the failure of a handle that names no value."""
    return Failure(BY_NAME["unknown_handle"], f"handle {handle} names nothing in this session", base, 0)


def _check_room(frame: Frame, program: Program, needs: Needs) -> None:
    """Raises CaseError if there is no room for the results. It names the first op whose result has none."""
    try:
        check_quota(frame.session, frame.limits, needs.size_bytes, needs.values)
    except CaseError as error:
        index = first_beyond_quota(frame.session, frame.limits, program, needs.lengths)
        raise CaseError(error.case.name, f"op {index} {program.signatures[index].op.name}: {error.text}") from None


def _check_inputs(segment: Segment, program: Program) -> None:
    if len(segment.inputs) != len(program.inputs):
        raise CaseError("bad_binding", f"{len(segment.inputs)} inputs; the program has {len(program.inputs)}")


def _inputs(
    session: Session, handles: Sequence[int], specs: Sequence[Spec]
) -> tuple[list[Value], dict[int, Spec | Failure | None]]:
    """Returns the values of a row's inputs, and the misfits.

    In place of each input that does not fit, the list of values has `_ABSENT`.
    """
    inputs: list[Value] = []
    misfits: dict[int, Spec | Failure | None] = {}
    for position, (handle, spec) in enumerate(zip(handles, specs, strict=True)):
        value = session.values.get(handle) or value_of(session, handle)
        if value is None or not value.is_named:
            misfits[position] = session.failed.failure_of(handle)
        elif value.spec != spec and value.state is not ValueState.FAILED:
            misfits[position] = value.spec
        else:
            inputs.append(value)
            continue
        inputs.append(_ABSENT)
    return inputs, misfits


def _admit(frame: Frame, segment: Segment, row: Row) -> None:
    """Takes credit for a row, makes its results, counts the row as reader of its inputs, and lets dying inputs die."""
    session, program, repetition = frame.session, row.entry.program, segment.repetition
    if repetition is NO_REPETITION:
        base, now_ns, awaited = row.base, row.queued_at_ns, ValueState.AWAITED
        row.outputs = [
            mint(session, base + index, spec, awaited, now_ns, index)
            for index, spec in zip(program.live, program.live_specs, strict=True)
        ]
    else:
        row.iterations = iterations_of(segment, row, row.queued_at_ns)
        row.outputs = row.iterations.outputs
    session.ops_total += program.op_count * repetition.iterations
    session.begin_row(row)
    for value in row.inputs:
        value.readers += 1
    if segment.dying:
        free_handles(session, dying_handles(segment), frame.effects.released)


def _count_use(frame: Frame, row: Row) -> None:
    entry = row.entry
    is_due = frame.programs.use(entry)
    if entry.loaded is None and (is_due or entry.state is PlanState.PLANNING):
        frame.effects.to_plan.append(entry)


def _take_misfits(frame: Frame, segment: Segment, row: Row, misfits: Misfits) -> Generator[None, Frame, None]:
    """Applies a segment with inputs that do not fit.

    If all results fail for one reason, none is made. Otherwise stand-ins replace the inputs, the results that depend on
    them fail one by one, and the row runs for the others.
    """
    entry, repetition = row.entry, segment.repetition
    handles, specs = segment.all_inputs, input_specs(repetition, entry.program)
    failure_of_input = cache(partial(_failure_of_input, row.base, handles, specs, misfits))
    new = [position for position, misfit in misfits.items() if not isinstance(misfit, Failure)]
    if new:
        frame.effects.failures.append(failure_of_input(min(new)))
    stepped = stepped_inputs(repetition, entry.program)
    frame, causes = yield from _within(frame, failure_causes(entry.program, stepped, misfits))
    failure = _reason_for_all(repetition, entry.program.live, causes, failure_of_input)
    if failure is not None:
        refuse_results(frame, segment, failure, entry.outline, row.amount)
        return
    stand_in_of = cache(stand_in)
    for position in misfits:
        row.inputs[position] = stand_in_of(specs[position])
    _admit(frame, segment, row)
    failures = failures_of_results(row, causes, failure_of_input)
    while not fail_some(frame, failures):
        frame = yield
    _count_use(frame, row)
    queue_row(row)


def _within(frame: Frame, steps: InSteps[T]) -> Generator[None, Frame, tuple[Frame, T]]:
    """Does steps that need no frame. Returns the frame of the last step, and what the steps return."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return frame, end.value
        frame = yield


def _reason_for_all(
    repetition: Repetition,
    live: Sequence[int],
    causes: Mapping[int, tuple[int, int]],
    failure_of_input: Callable[[int], Failure],
) -> Failure | None:
    """Returns the one failure for which all results fail that the client holds, or None if there is no such failure."""
    positions: set[int] = set()
    for index, kept in zip(live, repeat(1) if repetition.kept is None else repetition.kept, strict=False):
        if kept:
            first, position = causes.get(index, (MAX_ITERATIONS, 0))
            if first > repetition.iterations - kept:
                return None
            positions.add(position)
    failures = {failure_of_input(position) for position in positions}
    return failures.pop() if len(failures) == 1 else None


def _failure_of_input(
    base: int, handles: Sequence[int], specs: Sequence[Spec], misfits: Misfits, position: int
) -> Failure:
    actual, wanted = misfits[position], specs[position]
    if isinstance(actual, Failure):
        return actual
    if actual is None:
        return failure_of_unknown(handles[position], base)
    text = (
        f"input {position} is {actual.dtype.name}{list(actual.shape)}; "
        f"the program takes {wanted.dtype.name}{list(wanted.shape)}"
    )
    return Failure(BY_NAME["bad_binding"], text, base, 0)


def _take_rejected(frame: Frame, segment: Segment) -> None:
    rejected = frame.session.rejected_programs.get(segment.program)
    if rejected is None:
        raise CaseError("unknown_program", f"program {segment.program} was never sent")
    failure, claim = rejected
    check_handles(segment, range(claim.outline.width))
    frame.effects.failures.append(failure)
    amount = cost_of(segment.repetition, claim.amount, claim.sizes, frame.session.credit.ops)
    refuse_results(frame, segment, failure._replace(base=segment.base), claim.outline, amount)
