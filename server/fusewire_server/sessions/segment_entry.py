"""Applies a segment: binds its program to the session's values, and queues a row or fails the results. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial

from fusewire_protos.errors import BY_NAME, CaseError
from fusewire_protos.frames import Segment
from fusewire_protos.program import Program
from fusewire_protos.shapes import Spec
from fusewire_server.programs.failure import Failure
from fusewire_server.programs.program_table import PlanState, ProgramEntry
from fusewire_server.sessions.failed_results import NO_BYTES, fail_some, refuse_results
from fusewire_server.sessions.frame import FailedResults, Frame, PartlyFailed
from fusewire_server.sessions.rows import failures_of_results, queue_row, stand_in
from fusewire_server.sessions.session import Row, Session, Value, ValueState
from fusewire_server.sessions.validation import check_base, check_dying, first_failed, scalars_of, starts_of
from fusewire_server.sessions.values import check_quota, kill, mint

# Position of an input that does not fit -> the spec of the input's value, or None if the handle names no value.
Misfits = Mapping[int, Spec | None]

_ABSENT = stand_in(NO_BYTES)  # replaces an input that does not fit until the row has a stand-in of the right spec


def take_segment(frame: Frame, segment: Segment) -> FailedResults | PartlyFailed | None:
    """Queues a row of the segment's program.

    If the inputs, the bindings or the program are bad, fails results instead. Returns the results that are still to
    fail, or None if there are none. Raises CaseError for a protocol case.
    """
    session = frame.session
    entry = session.programs.get(segment.program)
    if entry is None:
        return _take_rejected(frame, segment)
    program = entry.program
    check_base(segment.base, program.live)
    try:
        _check_fit(frame, segment, program)
        scalars = scalars_of(program, segment.scalars)
        starts = starts_of(program, segment.starts)
    except CaseError as error:
        failure = Failure.of(error, segment.base)
        frame.effects.failures.append(failure)
        return _refuse(frame, segment, entry, lambda index: failure)
    inputs, misfits = _inputs(session, segment, program.inputs)
    row = Row(session, entry, segment.base, inputs, [], scalars, starts, frame.arrival.now_ns)
    if misfits:
        return _take_misfits(frame, segment, row, misfits)
    _admit(frame, segment, row)
    _use(frame, entry)
    queue_row(row)
    return None


def take_partly_failed(frame: Frame, failing: PartlyFailed) -> PartlyFailed | None:
    """Fails the next results of a row. Returns `failing` if results are left to fail; otherwise queues the row."""
    if not fail_some(frame, failing):
        return failing
    _use(frame, failing.row.entry)
    queue_row(failing.row)
    return None


def failure_of_unknown(handle: int, base: int) -> Failure:
    """Returns the failure of a handle that names no value."""
    return Failure(BY_NAME["unknown_handle"], f"handle {handle} names nothing in this session", base, 0)


def _check_fit(frame: Frame, segment: Segment, program: Program) -> None:
    if len(segment.inputs) != len(program.inputs):
        raise CaseError("bad_binding", f"{len(segment.inputs)} inputs; the program has {len(program.inputs)}")
    check_quota(frame.session, frame.limits, program.live_bytes, len(program.live))


def _inputs(session: Session, segment: Segment, specs: Sequence[Spec]) -> tuple[list[Value], dict[int, Spec | None]]:
    """Returns the values of a segment's inputs, and the misfits: position of an input that does not fit -> its spec.

    In place of each input that does not fit, the list of values has `_ABSENT`.
    """
    inputs: list[Value] = []
    misfits: dict[int, Spec | None] = {}
    for position, (handle, spec) in enumerate(zip(segment.inputs, specs, strict=True)):
        value = session.values.get(handle)
        if value is None or not value.is_named:
            misfits[position] = None
        elif value.spec != spec and value.state is not ValueState.FAILED:
            misfits[position] = value.spec
        else:
            inputs.append(value)
            continue
        inputs.append(_ABSENT)
    return inputs, misfits


def _admit(frame: Frame, segment: Segment, row: Row) -> None:
    """Takes credit for a row, makes its results, counts the row as reader of its inputs, and lets dying inputs die."""
    session, program = frame.session, row.entry.program
    result_spec = program.result_spec
    base, now_ns, awaited = row.base, row.queued_at_ns, ValueState.AWAITED
    row.outputs = [mint(session, base + index, result_spec(index), awaited, now_ns, index) for index in program.live]
    session.admit(row.entry.amount)
    session.ops_total += row.entry.amount.ops
    for value in row.inputs:
        value.readers += 1
    if segment.dying:
        kill(session, _dying(segment), frame.effects.released)


def _use(frame: Frame, entry: ProgramEntry) -> None:
    is_due = frame.programs.use(entry)
    if entry.loaded is None:
        frame.effects.used.append(entry)
        if is_due or entry.state is PlanState.PLANNING:
            frame.effects.to_plan.append(entry)


def _take_misfits(frame: Frame, segment: Segment, row: Row, misfits: Misfits) -> FailedResults | PartlyFailed | None:
    """Applies a segment with inputs that do not fit.

    If some results depend on none of these inputs, stand-ins replace the inputs and the row runs for those results.
    """
    program = row.entry.program
    failure_of_input = cache(partial(_failure_of_input, segment, program, misfits))
    frame.effects.failures.append(failure_of_input(min(misfits)))
    causes = first_failed(program, misfits)
    if causes.keys() >= set(program.live):
        return _refuse(frame, segment, row.entry, lambda index: failure_of_input(causes[index]))
    stand_in_of = cache(stand_in)
    for position in misfits:
        row.inputs[position] = stand_in_of(program.inputs[position])
    _admit(frame, segment, row)
    return take_partly_failed(frame, PartlyFailed(row, failures_of_results(row, causes, failure_of_input)))


def _failure_of_input(segment: Segment, program: Program, misfits: Misfits, position: int) -> Failure:
    actual, wanted = misfits[position], program.inputs[position]
    if actual is None:
        return failure_of_unknown(segment.inputs[position], segment.base)
    text = (
        f"input {position} is {actual.dtype.name}{list(actual.shape)}; "
        f"the program takes {wanted.dtype.name}{list(wanted.shape)}"
    )
    return Failure(BY_NAME["bad_binding"], text, segment.base, 0)


def _take_rejected(frame: Frame, segment: Segment) -> FailedResults | None:
    rejected = frame.session.rejected_programs.get(segment.program)
    if rejected is None:
        raise CaseError("unknown_program", f"program {segment.program} was never sent")
    failure, claim = rejected
    check_base(segment.base, claim.live)
    frame.effects.failures.append(failure)
    base = segment.base
    failures = ((base + index, failure._replace(base=base, op_index=index)) for index in claim.live)
    return refuse_results(frame, failures, _dying(segment), claim.amount)


def _refuse(
    frame: Frame, segment: Segment, entry: ProgramEntry, failure_of_op: Callable[[int], Failure]
) -> FailedResults | None:
    failures = _failures(segment.base, entry.program, failure_of_op)
    return refuse_results(frame, failures, _dying(segment), entry.amount)


def _failures(base: int, program: Program, failure_of_op: Callable[[int], Failure]) -> Iterator[tuple[int, Failure]]:
    return ((base + index, failure_of_op(index).of_result(program, base, index)) for index in program.live)


def _dying(segment: Segment) -> tuple[int, ...]:
    """Returns the handles that die with a segment."""
    check_dying(segment.dying, len(segment.inputs))
    return tuple([segment.inputs[position] for position in segment.dying])
