"""What a segment binds that repeats: checked, and turned into the values of its iterations. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from operator import mul
from reprlib import repr as shortened
from typing import Any

from fusewire_protos.credit import Amount, cost_of
from fusewire_protos.errors import CaseError
from fusewire_protos.frames import (
    FIRST_UPLOAD,
    HANDLES_PER_RECORDER,
    MAX_HANDLE,
    NO_REPETITION,
    Repetition,
    Scalar,
    Segment,
    Steps,
)
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs.program import Program
from fusewire_server.programs.program_table import Needs, ProgramEntry
from fusewire_server.sessions.entries.validation import check_starts, fits
from fusewire_server.sessions.iterations import Iterations, Stepped
from fusewire_server.sessions.session import Row, Session, Value, ValueState
from fusewire_server.sessions.values import mint

_INT64 = range(-(2**63), 2**63)  # the device thread computes the starts of all iterations in this dtype


def check_handles(segment: Segment, live: Sequence[int]) -> None:
    """Raises CaseError if a result gets a handle beyond the largest. `live` ascends.

    Nor may a result of a segment that repeats get the handle of an upload or of another recorder's result.
    """
    base, repetition = segment.base, segment.repetition
    last = base + live[-1] if live else base
    if repetition is NO_REPETITION:
        if last > MAX_HANDLE:
            raise CaseError("undecodable_frame", f"base {base} gives results handles beyond 2^63−1")
        return
    last += (repetition.iterations - 1) * repetition.handle_stride
    if last // HANDLES_PER_RECORDER != base // HANDLES_PER_RECORDER or last % HANDLES_PER_RECORDER >= FIRST_UPLOAD:
        text = f"{repetition.iterations} iterations from base {base} give results the handles of other values"
        raise CaseError("undecodable_frame", text)


def needs_of(repetition: Repetition, entry: ProgramEntry, credit: Amount) -> Needs:
    """Returns what a segment needs. Raises CaseError if the results that it keeps are not those of its program."""
    if repetition is NO_REPETITION:
        return entry.needs
    program = entry.program
    _check_kept(repetition, program)
    lengths = ring_lengths(repetition, entry)
    amount = cost_of(repetition, entry.amount, program.live_sizes, credit.ops)
    return Needs(amount, lengths, sum(map(mul, program.live_sizes, lengths)), sum(lengths))


def check_steps(segment: Segment, program: Program, scalars: Sequence[Scalar], starts: Sequence[int]) -> None:
    """Raises CaseError if the bindings of some iteration do not fit the program.

    `scalars` and `starts` are those of the first iteration, which are checked.
    """
    _check_inputs(segment, program)
    _check_scalars(segment.repetition, program, scalars)
    if segment.repetition.starts:
        _check_starts(segment.repetition, program, starts)


def ring_lengths(repetition: Repetition, entry: ProgramEntry) -> list[int]:
    """Returns the length of each live result's ring: `iterations` says why.

    What a plan updates in place needs no second value. Nor does it without a plan, because then such a result replaces
    the array when all ops of the iteration have run; so the plan may be dropped before the loop runs.
    """
    program, lags = entry.program, entry.program.lags
    if entry.loaded is not None:
        lags = lags | {program.live[position]: 0 for _, position in entry.loaded.plan.updates}
    return [
        max(kept, min(lags.get(index, 0) + 1, repetition.iterations))
        for index, kept in zip(program.live, repetition.kept or (), strict=True)
    ]


def input_specs(repetition: Repetition, program: Program) -> Sequence[Spec]:
    """Returns the spec that each of a segment's `all_inputs` must have."""
    if not repetition.inputs:
        return program.inputs
    further = [program.inputs[number] for number, steps in repetition.inputs for _ in _values(steps)[1:]]
    return [*program.inputs, *further]


def iterations_of(segment: Segment, row: Row, made_at_ns: int) -> Iterations:
    """Makes the values of a loop's results, and returns its iterations. Raises CaseError if a handle names a value."""
    program, repetition = row.entry.program, segment.repetition
    lengths = ring_lengths(repetition, row.entry)
    rings = [
        _ring(row.session, segment, index, spec, kept, length, made_at_ns)
        for index, spec, kept, length in zip(
            program.live, program.live_specs, repetition.kept or (), lengths, strict=True
        )
    ]
    return Iterations(program, repetition, rings, stepped_inputs(repetition, program))


def stepped_inputs(repetition: Repetition, program: Program) -> Stepped:
    """Returns for each stepped input the indices of its values among `all_inputs`."""
    further = count(len(program.inputs))
    return {number: (number, *[next(further) for _ in _values(steps)[1:]]) for number, steps in repetition.inputs}


def _ring(
    session: Session, segment: Segment, index: int, spec: Spec, kept: int, length: int, made_at_ns: int
) -> list[Value]:
    """Makes the ring of a result: `kept` values that the client holds, then hidden ones."""
    iterations, handle_stride, *_ = segment.repetition
    last = segment.base + (iterations - 1) * handle_stride + index
    ring = [
        mint(session, last - age * handle_stride, spec, ValueState.AWAITED, made_at_ns, index) for age in range(kept)
    ]
    while len(ring) < length:
        hidden = mint(session, session.next_hidden_handle(), spec, ValueState.AWAITED, made_at_ns, index)
        hidden.is_named = False
        ring.append(hidden)
    return ring


def _check_kept(repetition: Repetition, program: Program) -> None:
    """Raises CaseError if the results that the client keeps are not those of the program, or are too many."""
    kept = repetition.kept or ()
    if len(kept) != len(program.live):
        text = f"{len(kept)} results are kept or not; the program has {len(program.live)} live results"
        raise CaseError("bad_binding", text)
    if max(kept, default=0) > 1 and repetition.handle_stride < program.op_count:
        text = f"results of iterations of {program.op_count} ops have handles that are {repetition.handle_stride} apart"
        raise CaseError("bad_binding", text)


def _check_inputs(segment: Segment, program: Program) -> None:
    base, repetition, carried = segment.base, segment.repetition, dict(program.carried)
    own = range(base, base + (repetition.iterations - 1) * repetition.handle_stride + program.op_count)
    for number, steps in _indexed(repetition, repetition.inputs, len(program.inputs), "input"):
        if number in carried:
            raise CaseError("bad_binding", f"input {number} is carried, and cannot be stepped")
        if type(steps) is not tuple or set(map(type, steps)) != {int} or steps[0] != segment.inputs[number]:
            text = f"input {number} steps through {shortened(steps)}, which are not handles from its first on"
            raise CaseError("bad_binding", text)
        if any(handle in own for handle in steps):
            text = f"input {number} steps through {shortened(steps)}, of which some are results of the loop itself"
            raise CaseError("bad_binding", text)


def _check_scalars(repetition: Repetition, program: Program, scalars: Sequence[Scalar]) -> None:
    for number, values in _stepped(repetition, repetition.scalars, scalars, "scalar"):
        dtype = program.scalars[number]
        for value in values:
            if not fits(dtype, value):
                raise CaseError("bad_binding", f"scalar {number} steps to {value!r}, which {dtype.name} does not hold")


def _check_starts(repetition: Repetition, program: Program, starts: Sequence[int]) -> None:
    """Checks the least and the most of each start, because each axis of a slice is checked for itself.

    The start of a slice without elements may lie anywhere, but must fit the integers that starts are computed in.
    """
    least, most = [*starts], [*starts]
    for number, values in _stepped(repetition, repetition.starts, starts, "start"):
        if set(map(type, values)) != {int}:
            raise CaseError("bad_binding", f"start {number} steps through {shortened(values)}, which are not integers")
        least[number], most[number] = min(values), max(values)
        if least[number] not in _INT64 or most[number] not in _INT64:
            text = f"start {number} steps from {least[number]} to {most[number]}, which takes over 64 bits"
            raise CaseError("bad_binding", text)
    check_starts(program, least)
    check_starts(program, most)


def _stepped(
    repetition: Repetition, stepped: Sequence[tuple[int, Steps]], first: Sequence[Scalar], what: str
) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Yields for each stepped scalar or start its values: only both ends, if it changes by a difference."""
    for number, steps in _indexed(repetition, stepped, len(first), what):
        if type(steps) is tuple:
            yield number, steps
        elif type(base := first[number]) is int and type(steps) is int:
            yield number, (base, base + steps * (repetition.iterations - 1))
        else:
            raise CaseError("bad_binding", f"{what} {number} is {base!r}, which does not change by a difference")


def _indexed(
    repetition: Repetition, stepped: Sequence[tuple[int, Steps]], most: int, what: str
) -> Sequence[tuple[int, Steps]]:
    if stepped and stepped[-1][0] >= most:
        raise CaseError("bad_binding", f"{what} {stepped[-1][0]} is stepped; the program has {most}")
    for number, steps in stepped:
        if type(steps) is tuple and len(steps) > repetition.iterations:
            raise CaseError(
                "bad_binding", f"{what} {number} has {len(steps)} values in {repetition.iterations} iterations"
            )
    return stepped


def _values(steps: Steps) -> tuple[int, ...]:
    """Returns the handles of a stepped input. A bad binding may have a difference instead: it has no handles."""
    return steps if type(steps) is tuple else ()
