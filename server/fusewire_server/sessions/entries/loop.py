"""What a loop's entry binds beside its first iteration: checked, and turned into the values of its iterations. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, count
from reprlib import repr as shortened

from fusewire_protos.credit import Amount
from fusewire_protos.errors import CaseError
from fusewire_protos.frames import FIRST_UPLOAD, HANDLES_PER_RECORDER, Loop, Scalar, Steps
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs.program import Program
from fusewire_server.programs.program_table import ProgramEntry
from fusewire_server.sessions.entries.validation import check_starts, fits
from fusewire_server.sessions.iterations import Iterations, Stepped
from fusewire_server.sessions.session import Row, Session, Value, ValueState
from fusewire_server.sessions.values import mint

_INT64 = range(-(2**63), 2**63)  # the device thread computes the starts of all iterations in this dtype


def check_handles(loop: Loop, live: Sequence[int]) -> None:
    """Raises CaseError if a result gets the handle of an upload or of another recorder's result. `live` ascends."""
    first = loop.first.base
    last = first + (live[-1] if live else 0) + (loop.iterations - 1) * loop.handle_stride
    if last // HANDLES_PER_RECORDER != first // HANDLES_PER_RECORDER or last % HANDLES_PER_RECORDER >= FIRST_UPLOAD:
        text = f"a loop of {loop.iterations} iterations from base {first} gives results the handles of other values"
        raise CaseError("undecodable_frame", text)


def check_kept(loop: Loop, program: Program) -> None:
    """Raises CaseError if the results that the client keeps are not those of the program, or are too many."""
    if len(loop.kept) != len(program.live):
        text = f"{len(loop.kept)} results are kept or not; the program has {len(program.live)} live results"
        raise CaseError("bad_binding", text)
    if max(loop.kept, default=0) > 1 and loop.handle_stride < program.op_count:
        text = f"results of iterations of {program.op_count} ops have handles that are {loop.handle_stride} apart"
        raise CaseError("bad_binding", text)


def check_steps(loop: Loop, program: Program, scalars: Sequence[Scalar], starts: Sequence[int]) -> None:
    """Raises CaseError if the bindings of some iteration do not fit the program.

    `scalars` and `starts` are those of the first iteration, which are checked.
    """
    _check_inputs(loop, program)
    for number, steps in _indexed(loop, loop.scalars, len(program.scalars), "scalar"):
        dtype = program.scalars[number]
        values = steps if type(steps) is tuple else _ends(scalars[number], steps, loop.iterations, f"scalar {number}")
        for value in values:
            if not fits(dtype, value):
                raise CaseError("bad_binding", f"scalar {number} steps to {value!r}, which {dtype.name} does not hold")
    _check_starts(loop, program, starts)


def ring_lengths(loop: Loop, entry: ProgramEntry) -> list[int]:
    """Returns the length of each live result's ring: `iterations` says why.

    What a plan updates in place needs no second value. Nor does it without a plan, because then such a result replaces
    the array when all ops of the iteration have run; so the plan may be dropped before the loop runs.
    """
    program, lags = entry.program, entry.program.lags
    if entry.loaded is not None:
        lags = lags | {program.live[position]: 0 for _, position in entry.loaded.plan.updates}
    return [
        max(kept, min(lags.get(index, 0) + 1, loop.iterations))
        for index, kept in zip(program.live, loop.kept, strict=True)
    ]


def amount_of(loop: Loop, op_count: int, sizes: Sequence[int], credit: Amount) -> Amount:
    """Returns the credit that a loop takes. A loop of more ops than there is credit for takes the credit for ops.

    `op_count` is that of its program, and `sizes` are the bytes of the program's live results.
    """
    kept_bytes = sum([size * kept for size, kept in zip(sizes, loop.kept, strict=False)])
    return Amount(min(op_count * loop.iterations, credit.ops), kept_bytes, 1)


def input_handles(loop: Loop) -> tuple[int, ...]:
    """Returns the handles of all inputs of a row: those of the first iteration, then the others of stepped inputs."""
    return (*loop.first.inputs, *chain.from_iterable([_values(steps)[1:] for _, steps in loop.inputs]))


def input_specs(loop: Loop, program: Program) -> list[Spec]:
    """Returns the spec that each of `input_handles` must have."""
    return [*program.inputs, *[program.inputs[number] for number, steps in loop.inputs for _ in _values(steps)[1:]]]


def iterations_of(loop: Loop, row: Row, made_at_ns: int) -> Iterations:
    """Makes the values of a loop's results, and returns its iterations. Raises CaseError if a handle names a value."""
    program = row.entry.program
    rings = [
        _ring(row.session, loop, index, program.result_spec(index), kept, length, made_at_ns)
        for index, kept, length in zip(program.live, loop.kept, ring_lengths(loop, row.entry), strict=True)
    ]
    stepped = stepped_inputs(loop, program)
    return Iterations(program, loop.iterations, rings, loop.kept, stepped, dict(loop.scalars), dict(loop.starts))


def stepped_inputs(loop: Loop, program: Program) -> Stepped:
    """Returns for each stepped input the indices of its values among `input_handles`."""
    further = count(len(program.inputs))
    return {number: (number, *[next(further) for _ in _values(steps)[1:]]) for number, steps in loop.inputs}


def _ring(session: Session, loop: Loop, index: int, spec: Spec, kept: int, length: int, made_at_ns: int) -> list[Value]:
    """Makes the ring of a result: `kept` values that the client holds, then hidden ones."""
    last = loop.first.base + (loop.iterations - 1) * loop.handle_stride + index
    ring = [
        mint(session, last - age * loop.handle_stride, spec, ValueState.AWAITED, made_at_ns, index)
        for age in range(kept)
    ]
    while len(ring) < length:
        hidden = mint(session, session.next_hidden_handle(), spec, ValueState.AWAITED, made_at_ns, index)
        hidden.is_named = False
        ring.append(hidden)
    return ring


def _check_inputs(loop: Loop, program: Program) -> None:
    carried = dict(program.carried)
    own = range(loop.first.base, loop.first.base + (loop.iterations - 1) * loop.handle_stride + program.op_count)
    for number, steps in _indexed(loop, loop.inputs, len(program.inputs), "input"):
        if number in carried:
            raise CaseError("bad_binding", f"input {number} is carried, and cannot be stepped")
        if type(steps) is not tuple or set(map(type, steps)) != {int} or steps[0] != loop.first.inputs[number]:
            text = f"input {number} steps through {shortened(steps)}, which are not handles from its first on"
            raise CaseError("bad_binding", text)
        if any(handle in own for handle in steps):
            text = f"input {number} steps through {shortened(steps)}, of which some are results of the loop itself"
            raise CaseError("bad_binding", text)


def _check_starts(loop: Loop, program: Program, starts: Sequence[int]) -> None:
    """Checks the least and the most of each start, because each axis of a slice is checked for itself.

    The start of a slice without elements may lie anywhere, but must fit the integers that starts are computed in.
    """
    least, most = [*starts], [*starts]
    for number, steps in _indexed(loop, loop.starts, program.starts, "start"):
        values = steps if type(steps) is tuple else _ends(least[number], steps, loop.iterations, f"start {number}")
        if set(map(type, values)) != {int}:
            raise CaseError("bad_binding", f"start {number} steps through {shortened(values)}, which are not integers")
        least[number], most[number] = min(values), max(values)
        if least[number] not in _INT64 or most[number] not in _INT64:
            text = f"start {number} steps from {least[number]} to {most[number]}, which takes over 64 bits"
            raise CaseError("bad_binding", text)
    if loop.starts:
        check_starts(program, least)
        check_starts(program, most)


def _indexed(loop: Loop, stepped: Sequence[tuple[int, Steps]], most: int, what: str) -> Sequence[tuple[int, Steps]]:
    if stepped and stepped[-1][0] >= most:
        raise CaseError("bad_binding", f"{what} {stepped[-1][0]} is stepped; the program has {most}")
    for number, steps in stepped:
        if type(steps) is tuple and len(steps) > loop.iterations:
            raise CaseError("bad_binding", f"{what} {number} has {len(steps)} values in {loop.iterations} iterations")
    return stepped


def _ends(base: object, difference: Steps, count_: int, what: str) -> tuple[int, int]:
    """Returns the first and the last of the values of a binding that changes by a difference."""
    if type(base) is not int or type(difference) is not int:
        raise CaseError("bad_binding", f"{what} is {base!r}, which does not change by a difference")
    return base, base + difference * (count_ - 1)


def _values(steps: Steps) -> tuple[int, ...]:
    """Returns the handles of a stepped input. A bad binding may have a difference instead: it has no handles."""
    return steps if type(steps) is tuple else ()
