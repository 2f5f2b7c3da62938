"""Applies a segment: binds its program to the session's values, and queues a row or fails the results. Pure."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from functools import cache, partial
from itertools import repeat
from typing import NamedTuple, TypeVar

from fusewire_protos.credit import Amount
from fusewire_protos.errors import BY_NAME, CaseError
from fusewire_protos.frames import MAX_ITERATIONS, Loop, Segment
from fusewire_protos.in_steps import InSteps
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs.program import Program
from fusewire_server.programs.failure import Failure
from fusewire_server.programs.outline import Outline
from fusewire_server.programs.program_table import PlanState, ProgramEntry
from fusewire_server.sessions.entries.failed_results import fail_some, refuse_results
from fusewire_server.sessions.entries.frame import Frame, Unfinished, begin, go_on
from fusewire_server.sessions.entries.loop import (
    amount_of,
    check_handles,
    check_kept,
    check_steps,
    input_handles,
    input_specs,
    iterations_of,
    ring_lengths,
    stepped_inputs,
)
from fusewire_server.sessions.entries.validation import check_base, check_dying, scalars_of, starts_of
from fusewire_server.sessions.iterations import failure_causes
from fusewire_server.sessions.rows import failures_of_results, queue_row, stand_in
from fusewire_server.sessions.session import Row, Session, Value, ValueState
from fusewire_server.sessions.tables.failed_handles import FailedRange
from fusewire_server.sessions.values import check_quota, first_beyond_quota, free_handles, mint, value_of

# Position of an input that does not fit -> the spec of the input's value, the failure of its handle, or None if the
# handle names nothing.
Misfits = Mapping[int, Spec | Failure | None]

# Replaces an input that does not fit until the row has a stand-in of the right spec.
_ABSENT = stand_in(Spec(dtypes.uint8, (0,)))

MOST_UNPACKED = 256  # inputs of a segment or loop in one step

T = TypeVar("T")

_ONE_SEGMENT = Amount(0, 0, 1)  # taken by a loop that does not say what it keeps


class _Use(NamedTuple):
    """A use of a program: by a segment, or by a loop. `handles` and `specs` are those of the row's inputs."""

    row: Row
    handles: Sequence[int]
    specs: Sequence[Spec]
    dying: tuple[int, ...]
    loop: Loop | None


def take_segment(frame: Frame, segment: Segment) -> Unfinished | None:
    """Queues a row of the segment's program.

    If the inputs, the bindings or the program are bad, fails results instead. Returns the steps that are left, or None
    if there are none. Raises CaseError for a protocol case.
    """
    if frame.session.packed.count and len(segment.inputs) > MOST_UNPACKED:
        return begin(_take_unpacked(frame, segment.inputs, partial(_take_segment, segment=segment)))
    return _take_segment(frame, segment)


def _take_segment(frame: Frame, segment: Segment) -> Unfinished | None:
    session = frame.session
    entry = session.programs.get(segment.program)
    if entry is None:
        _take_rejected(frame, segment, None)
        return None
    program = entry.program
    check_base(segment.base, program.live)
    try:
        _check_inputs(segment, program)
        _check_room(frame, program, program.live_bytes, len(program.live), repeat(1))
        scalars = scalars_of(program, segment.scalars)
        starts = starts_of(program, segment.starts)
    except CaseError as error:
        _refuse_for(frame, error, segment, None, entry, entry.amount)
        return None
    row = Row(session, entry, segment.base, [], [], scalars, starts, frame.arrival.now_ns)
    return _take(frame, _Use(row, segment.inputs, program.inputs, segment.dying, None))


def take_loop(frame: Frame, loop: Loop) -> Unfinished | None:
    """Queues a row that runs a program several times. Does and raises what `take_segment` does."""
    if frame.session.packed.count:
        handles = [handle for handle in input_handles(loop) if type(handle) is int]
        if len(handles) > MOST_UNPACKED:
            return begin(_take_unpacked(frame, handles, partial(_take_loop, loop=loop)))
    return _take_loop(frame, loop)


def _take_unpacked(
    frame: Frame, handles: Sequence[int], take: Callable[[Frame], Unfinished | None]
) -> Generator[None, Frame, None]:
    """Unpacks the inputs of a segment or loop, `MOST_UNPACKED` in a step, before the segment or loop is taken."""
    for first in range(0, len(handles), MOST_UNPACKED):
        for handle in handles[first : first + MOST_UNPACKED]:
            value_of(frame.session, handle)
        frame = yield
    left = take(frame)
    while left is not None:
        frame = yield
        left = go_on(frame, left)


def _take_loop(frame: Frame, loop: Loop) -> Unfinished | None:
    session, first = frame.session, loop.first
    entry = session.programs.get(first.program)
    if entry is None:
        _take_rejected(frame, first, loop)
        return None
    program, amount = entry.program, _ONE_SEGMENT
    check_handles(loop, program.live)
    try:
        check_kept(loop, program)
        amount = amount_of(loop, program.op_count, program.live_sizes, session.credit)
        _check_inputs(first, program)
        lengths = ring_lengths(loop, entry)
        stored_bytes = sum([size * length for size, length in zip(program.live_sizes, lengths, strict=True)])
        _check_room(frame, program, stored_bytes, sum(lengths), lengths)
        scalars = scalars_of(program, first.scalars)
        starts = starts_of(program, first.starts)
        check_steps(loop, program, scalars, starts)
    except CaseError as error:
        _refuse_for(frame, error, first, loop, entry, amount)
        return None
    row = Row(session, entry, first.base, [], [], scalars, starts, frame.arrival.now_ns, amount)
    return _take(frame, _Use(row, input_handles(loop), input_specs(loop, program), first.dying, loop))


def failure_of_unknown(handle: int, base: int) -> Failure:
    """Returns the failure of a handle that names no value."""
    return Failure(BY_NAME["unknown_handle"], f"handle {handle} names nothing in this session", base, 0)


def _check_room(frame: Frame, program: Program, more_bytes: int, more_handles: int, lengths: Iterable[int]) -> None:
    """Raises CaseError if there is no room for the results. It names the first op whose result has none.

    `lengths` says how many values of each live result there will be, of `more_bytes` and `more_handles` in all.
    """
    try:
        check_quota(frame.session, frame.limits, more_bytes, more_handles)
    except CaseError as error:
        index = first_beyond_quota(frame.session, frame.limits, program, lengths)
        raise CaseError(error.case.name, f"op {index} {program.signatures[index].op.name}: {error.text}") from None


def _check_inputs(segment: Segment, program: Program) -> None:
    if len(segment.inputs) != len(program.inputs):
        raise CaseError("bad_binding", f"{len(segment.inputs)} inputs; the program has {len(program.inputs)}")


def _take(frame: Frame, use: _Use) -> Unfinished | None:
    row = use.row
    row.inputs, misfits = _inputs(frame.session, use.handles, use.specs)
    if misfits:
        return begin(_take_misfits(frame, use, misfits))
    _admit(frame, use)
    _count_use(frame, row)
    queue_row(row)
    return None


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


def _admit(frame: Frame, use: _Use) -> None:
    """Takes credit for a row, makes its results, counts the row as reader of its inputs, and lets dying inputs die."""
    session, row = frame.session, use.row
    if use.loop is None:
        program, base, now_ns = row.entry.program, row.base, row.queued_at_ns
        result_spec, awaited = program.result_spec, ValueState.AWAITED
        row.outputs = [
            mint(session, base + index, result_spec(index), awaited, now_ns, index) for index in program.live
        ]
        session.ops_total += row.amount.ops
    else:
        row.iterations = iterations_of(use.loop, row, row.queued_at_ns)
        row.outputs = row.iterations.outputs
        session.ops_total += row.entry.program.op_count * use.loop.iterations
    session.begin_row(row)
    for value in row.inputs:
        value.readers += 1
    if use.dying:
        free_handles(session, _dying(use.dying, use.handles), frame.effects.released)


def _count_use(frame: Frame, row: Row) -> None:
    entry = row.entry
    is_due = frame.programs.use(entry)
    if entry.loaded is None and (is_due or entry.state is PlanState.PLANNING):
        frame.effects.to_plan.append(entry)


def _take_misfits(frame: Frame, use: _Use, misfits: Misfits) -> Generator[None, Frame, None]:
    """Applies a segment or loop with inputs that do not fit.

    If all results fail for one reason, none is made. Otherwise stand-ins replace the inputs, the results that depend on
    them fail one by one, and the row runs for the others.
    """
    row, program = use.row, use.row.entry.program
    failure_of_input = cache(partial(_failure_of_input, use, misfits))
    new = [position for position, misfit in misfits.items() if not isinstance(misfit, Failure)]
    if new:
        frame.effects.failures.append(failure_of_input(min(new)))
    stepped = None if use.loop is None else stepped_inputs(use.loop, program)
    frame, causes = yield from _within(frame, failure_causes(program, stepped, misfits))
    failure = _reason_for_all(use, causes, failure_of_input)
    if failure is not None:
        failed = _failed_range(failure, row.base, use.loop, row.entry.outline)
        refuse_results(frame, failed, _dying(use.dying, use.handles), row.amount)
        return
    stand_in_of = cache(stand_in)
    for position in misfits:
        row.inputs[position] = stand_in_of(use.specs[position])
    _admit(frame, use)
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
    use: _Use, causes: Mapping[int, tuple[int, int]], failure_of_input: Callable[[int], Failure]
) -> Failure | None:
    """Returns the one failure for which all results fail that the client holds, or None if there is no such failure."""
    live, loop = use.row.entry.program.live, use.loop
    positions: set[int] = set()
    for index, kept in zip(live, repeat(1) if loop is None else loop.kept, strict=False):
        if kept:
            first, position = causes.get(index, (MAX_ITERATIONS, 0))
            if first > (0 if loop is None else loop.iterations - kept):
                return None
            positions.add(position)
    failures = {failure_of_input(position) for position in positions}
    return failures.pop() if len(failures) == 1 else None


def _failure_of_input(use: _Use, misfits: Misfits, position: int) -> Failure:
    actual, wanted, base = misfits[position], use.specs[position], use.row.base
    if isinstance(actual, Failure):
        return actual
    if actual is None:
        return failure_of_unknown(use.handles[position], base)
    text = (
        f"input {position} is {actual.dtype.name}{list(actual.shape)}; "
        f"the program takes {wanted.dtype.name}{list(wanted.shape)}"
    )
    return Failure(BY_NAME["bad_binding"], text, base, 0)


def _take_rejected(frame: Frame, segment: Segment, loop: Loop | None) -> None:
    rejected = frame.session.rejected_programs.get(segment.program)
    if rejected is None:
        raise CaseError("unknown_program", f"program {segment.program} was never sent")
    failure, claim = rejected
    base, amount = segment.base, claim.amount
    live = range(claim.outline.width)
    check_base(base, live)
    if loop is not None:
        check_handles(loop, live)
        amount = amount_of(loop, amount.ops, claim.sizes, frame.session.credit)
    frame.effects.failures.append(failure)
    failed = _failed_range(failure._replace(base=base), base, loop, claim.outline)
    refuse_results(frame, failed, _dying(segment.dying, _handles(segment, loop)), amount)


def _refuse_for(
    frame: Frame, error: CaseError, segment: Segment, loop: Loop | None, entry: ProgramEntry, amount: Amount
) -> None:
    """Fails all results of a segment or loop whose bindings do not fit."""
    failure = Failure.of(error, segment.base)
    frame.effects.failures.append(failure)
    failed = _failed_range(failure, segment.base, loop, entry.outline)
    refuse_results(frame, failed, _dying(segment.dying, _handles(segment, loop)), amount)


def _handles(segment: Segment, loop: Loop | None) -> Sequence[int]:
    """Returns the handles of all inputs of a segment or loop whose bindings may be bad."""
    return segment.inputs if loop is None else input_handles(loop)


def _failed_range(failure: Failure, base: int, loop: Loop | None, outline: Outline) -> FailedRange:
    """Returns the results that the client holds of a segment or loop, failed."""
    if loop is None:
        return FailedRange(failure, base, outline)
    return FailedRange(failure, base, outline, loop.iterations, loop.handle_stride, loop.kept)


def _dying(positions: tuple[int, ...], handles: Sequence[int]) -> tuple[int, ...]:
    """Returns the handles that die with a segment. `handles` are those of its inputs."""
    check_dying(positions, len(handles))
    return tuple([handles[position] for position in positions])
