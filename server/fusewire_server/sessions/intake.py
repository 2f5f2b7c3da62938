"""Applies the entries of a frame to its session: tables change, rows and fetches come out. Pure.

Entries take effect in order; `rows` says when the rows that come of them go on. A protocol case raises CaseError and
ends the session; an operation case fails values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import islice
from typing import Any, NamedTuple

from fusewire_protos import dtypes, frames
from fusewire_protos.credit import Amount
from fusewire_protos.errors import BY_NAME, CaseError, Consequence
from fusewire_protos.frames import Entry, NewProgram
from fusewire_protos.program import Program
from fusewire_protos.shapes import Spec
from fusewire_server.config.config import Limits
from fusewire_server.programs.failure import Failure
from fusewire_server.programs.program_table import PlanState, ProgramEntry, ProgramTable, claim_of
from fusewire_server.sessions import validation as validate
from fusewire_server.sessions.rows import cancel_rows, fail_value, failures_of_results, queue_row, stand_in
from fusewire_server.sessions.session import Fetching, Row, Session, Value, ValueState, failure_of
from fusewire_server.sessions.values import check_quota, end_reading, kill, mint

MOST_KILLED = 2048  # handles that die in one piece
MOST_FAILED = 512  # results of a segment that are made failures in one piece


class FailedResults(NamedTuple):
    """Handles of results that will never exist, and why; when none is left to be minted, the inputs that die do.

    They do not die before, because none of the results may have the handle of one.
    """

    failures: Iterator[tuple[int, Failure]]
    dying: tuple[int, ...] = ()


class PartlyFailed(NamedTuple):
    """A row that is queued when those of its results have failed that will never exist: the ones left, and why."""

    row: Row
    failures: Iterator[tuple[Value, Failure]]


Item = NewProgram | Entry | FailedResults | PartlyFailed  # a frame's new programs are taken before its entries


class Arrival(NamedTuple):
    """What came with a frame beside its items."""

    tensors: Sequence[bytes]
    now_ns: int


class Taken:
    """What a frame came to, for the engine to act on."""

    __slots__ = ("declared", "failures", "reads", "released", "to_plan", "used", "writes")

    def __init__(self) -> None:
        self.writes: list[tuple[Value, bytes]] = []  # inline uploads
        self.declared: list[Value] = []  # uploads whose bytes come beside the stream
        self.reads: list[Fetching] = []  # of values that are ready
        self.released: list[Value] = []  # ready values that died
        self.to_plan: list[ProgramEntry] = []  # those that others wait for already too
        self.used: list[ProgramEntry] = []  # run at tier 0 now: what that needs must be at hand
        self.failures: list[Failure] = []  # for the counters


class Intake:
    """Applies entries to sessions. Owned by the loop thread."""

    def __init__(self, limits: Limits, programs: ProgramTable) -> None:
        self._limits = limits
        self._programs = programs
        self._take: dict[type, Callable[[Session, Any, Arrival, Taken], Item | None]] = {
            NewProgram: self._take_program,
            frames.Segment: self._take_segment,
            frames.Upload: self._take_upload,
            frames.Free: self._take_free,
            frames.Fetch: self._take_fetch,
            frames.Abandon: self._take_abandon,
            frames.Cancel: self._take_cancel,
            frames.Forget: self._take_forget,
            FailedResults: self._take_failed,
            PartlyFailed: self._take_partly_failed,
        }

    def take(self, session: Session, items: Iterable[Item], arrival: Arrival, taken: Taken) -> Item | None:
        """Applies items of a frame in order, until one leaves something: it comes before the items that follow."""
        for item in items:
            left = self._take[type(item)](session, item, arrival, taken)
            if left is not None:
                return left
        return None

    def close(self, session: Session) -> dict[int, Value]:
        """A session has ended: rows that wait are dropped. The values that it held, which are to die."""
        values, session.values, session.large = session.values, {}, {}
        session.queue.clear()
        session.held_back.clear()
        session.forget_answers()
        for entry in session.programs.values():
            self._programs.let_go(session.session_id, entry)
        session.programs.clear()
        session.live_bytes = 0
        return values

    def _take_program(self, session: Session, new: NewProgram, arrival: Arrival, taken: Taken) -> None:
        """Numbers a new program. A bad one fails the segments that use it, not the session."""
        if new.number in session.programs or new.number in session.rejected_programs:
            raise CaseError("undecodable_frame", f"program {new.number} is numbered twice")
        if len(session.programs) + len(session.rejected_programs) >= self._limits.programs:
            limit = self._limits.programs
            raise CaseError("undecodable_frame", f"more than limits.programs = {limit} programs are numbered at once")
        try:
            entry = self._programs.intern(new.raw, is_fragment=new.is_fragment)
            self._programs.hold(session.session_id, entry)
        except CaseError as error:
            if error.case.consequence is Consequence.PROTOCOL:
                raise
            failure = Failure.of(error)
            session.rejected_programs[new.number] = (failure, claim_of(new.raw, self._programs.limits, failure.case))
            taken.failures.append(failure)
            return
        session.programs[new.number] = entry

    def _take_segment(self, session: Session, segment: frames.Segment, arrival: Arrival, taken: Taken) -> Item | None:
        entry = session.programs.get(segment.program)
        if entry is None:
            return self._take_rejected(session, segment, taken)
        program = entry.program
        try:
            self._check_fit(session, segment, program)
            scalars = validate.scalars_of(program, segment.scalars)
            starts = validate.starts_of(program, segment.starts)
        except CaseError as error:
            failure = Failure.of(error, segment.base)
            taken.failures.append(failure)
            return self._refuse(session, segment, entry, lambda index: failure, taken)
        inputs, misfits = self._inputs(session, segment, program.inputs)
        row = Row(session, entry, segment.base, inputs, [], scalars, starts, arrival.now_ns)
        if misfits:
            return self._take_misfits(session, segment, row, misfits, taken)
        self._admit(session, segment, row, taken)
        self._use(entry, taken)
        queue_row(row)
        return None

    def _take_misfits(
        self, session: Session, segment: frames.Segment, row: Row, misfits: Mapping[int, Spec | None], taken: Taken
    ) -> Item | None:
        """A segment with absent inputs: if any result depends on none of them, stand-ins fill their places."""
        program = row.entry.program
        failure_of_input = cache(partial(self._failure_of_input, session, segment, program, misfits))
        taken.failures.append(failure_of_input(min(misfits)))
        causes = validate.first_failed(program, misfits)
        if causes.keys() >= set(program.live):
            return self._refuse(session, segment, row.entry, lambda index: failure_of_input(causes[index]), taken)
        stand_in_of = cache(stand_in)
        for position in misfits:
            row.inputs[position] = stand_in_of(program.inputs[position])
        self._admit(session, segment, row, taken)
        return self._fail_some(session, PartlyFailed(row, failures_of_results(row, causes, failure_of_input)), taken)

    def _use(self, entry: ProgramEntry, taken: Taken) -> None:
        is_due = self._programs.use(entry)
        if entry.loaded is None:
            taken.used.append(entry)
            if is_due or entry.state is PlanState.PLANNING:
                taken.to_plan.append(entry)

    def _take_rejected(self, session: Session, segment: frames.Segment, taken: Taken) -> Item | None:
        rejected = session.rejected_programs.get(segment.program)
        if rejected is None:
            raise CaseError("unknown_program", f"program {segment.program} was never sent")
        failure, claim = rejected
        taken.failures.append(failure)
        base = segment.base
        failures = ((base + index, failure._replace(base=base, op_index=index)) for index in claim.live)
        return self._admit_failed(session, segment, failures, claim.amount, taken)

    def _outputs(self, session: Session, base: int, program: Program) -> list[Value]:
        result_spec = program.result_spec
        return [mint(session, base + index, result_spec(index), ValueState.AWAITED) for index in program.live]

    def _admit(self, session: Session, segment: frames.Segment, row: Row, taken: Taken) -> None:
        """A row takes its credit and its inputs, and its results come into being."""
        row.outputs = self._outputs(session, row.base, row.entry.program)
        session.admit(row.entry.amount)
        session.ops_total += row.entry.amount.ops
        for value in row.inputs:
            value.readers += 1
        if segment.dying:
            kill(session, self._dying(segment), taken.released)

    def _check_fit(self, session: Session, segment: frames.Segment, program: Program) -> None:
        if len(segment.inputs) != len(program.inputs):
            raise CaseError("bad_binding", f"{len(segment.inputs)} inputs; the program has {len(program.inputs)}")
        check_quota(session, self._limits, program.live_bytes, len(program.live))

    def _refuse(
        self,
        session: Session,
        segment: frames.Segment,
        entry: ProgramEntry,
        failure_of_op: Callable[[int], Failure],
        taken: Taken,
    ) -> Item | None:
        base, program = segment.base, entry.program
        failures = ((base + index, failure_of_op(index).of_result(program, base, index)) for index in program.live)
        return self._admit_failed(session, segment, failures, entry.amount, taken)

    def _inputs(
        self, session: Session, segment: frames.Segment, specs: Sequence[Spec]
    ) -> tuple[list[Value], dict[int, Spec | None]]:
        """The values of a segment's inputs, and what those are that do not fit, by position; None: nothing at all.

        These are absent.
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

    def _failure_of_input(
        self,
        session: Session,
        segment: frames.Segment,
        program: Program,
        misfits: Mapping[int, Spec | None],
        position: int,
    ) -> Failure:
        actual = misfits[position]
        if actual is None:
            return self._failure_of_unknown(session, segment.inputs[position], segment.base)
        text = _misfit(position, actual, program.inputs[position])
        return Failure(BY_NAME["bad_binding"], text, segment.base, 0)

    def _take_partly_failed(
        self, session: Session, failing: PartlyFailed, arrival: Arrival, taken: Taken
    ) -> Item | None:
        return self._fail_some(session, failing, taken)

    def _fail_some(self, session: Session, failing: PartlyFailed, taken: Taken) -> Item | None:
        """Some results of a row fail, or the first of many; when none are left, it is queued."""
        count = 0
        for value, failure in islice(failing.failures, MOST_FAILED):
            fail_value(session, value, failure)
            count += 1
        if count == MOST_FAILED:
            return failing
        self._use(failing.row.entry, taken)
        queue_row(failing.row)
        return None

    def _admit_failed(
        self,
        session: Session,
        segment: frames.Segment,
        failures: Iterator[tuple[int, Failure]],
        amount: Amount,
        taken: Taken,
    ) -> Item | None:
        """A segment of which nothing can be computed: its results exist as failures; its inputs still die."""
        dying = self._dying(segment)
        session.admit(amount)
        session.complete(amount)
        return self._mint_failed(session, FailedResults(failures, dying), taken)

    def _take_failed(self, session: Session, results: FailedResults, arrival: Arrival, taken: Taken) -> Item | None:
        return self._mint_failed(session, results, taken)

    def _take_upload(self, session: Session, upload: frames.Upload, arrival: Arrival, taken: Taken) -> None:
        tensor = _tensor_of(upload, arrival.tensors)
        credit = Amount(0, 0 if tensor is None else len(tensor), 0)
        session.admit(credit)
        try:
            self._check_upload(session, upload, tensor)
        except CaseError as error:
            session.complete(credit)
            taken.failures.append(Failure.of(error))
            self._mint_failed(session, FailedResults(iter([(upload.handle, Failure.of(error))])), taken)
            return
        if tensor is None:
            taken.declared.append(mint(session, upload.handle, upload.spec, ValueState.AWAITED))
            return
        taken.writes.append((mint(session, upload.handle, upload.spec, ValueState.READY), tensor))

    def _check_upload(self, session: Session, upload: frames.Upload, tensor: bytes | None) -> None:
        size_bytes = upload.spec.size_bytes
        if size_bytes > self._limits.array_bytes:
            limit = self._limits.array_bytes
            raise CaseError("quota_array_bytes", f"an upload of {size_bytes} bytes; limits.array_bytes = {limit}")
        check_quota(session, self._limits, size_bytes, 1)
        if tensor is None:
            return
        if len(tensor) != size_bytes:
            raise CaseError("upload_failed", f"{len(tensor)} bytes came for an upload declared as {size_bytes}")
        validate.check_uploaded(upload.spec.dtype, tensor)

    def _take_free(self, session: Session, free: frames.Free, arrival: Arrival, taken: Taken) -> Item | None:
        handles = free.handles
        kill(session, handles[:MOST_KILLED], taken.released)
        return frames.Free(handles[MOST_KILLED:]) if len(handles) > MOST_KILLED else None

    def _take_fetch(self, session: Session, fetch: frames.Fetch, arrival: Arrival, taken: Taken) -> None:
        if self._is_repeated(session, fetch.fetch):
            return
        if len(session.fetches) + len(session.answers.untaken) >= self._limits.handles:
            limit = self._limits.handles
            raise CaseError("slow_reader", f"more than limits.handles = {limit} fetches wait to be taken")
        value = session.values.get(fetch.handle)
        if value is None or not value.is_named:
            failure = self._failure_of_unknown(session, fetch.handle, 0)
            taken.failures.append(failure)
            session.answer_failure(fetch.fetch, failure)
            return
        if value.state is ValueState.FAILED:
            session.answer_failure(fetch.fetch, failure_of(value))
            return
        fetching = Fetching(session, fetch.fetch, value)
        session.fetches[fetch.fetch] = fetching
        value.readers += 1
        if value.state is ValueState.READY:
            taken.reads.append(fetching)
        else:
            value.fetches[fetch.fetch] = fetching

    def _is_repeated(self, session: Session, fetch: int) -> bool:
        """Whether the answer to a fetch is on its way. One whose bytes wait beside the stream is told again."""
        if fetch in session.fetches or fetch in session.answers.untaken:
            return True
        return session.answers.tell_again(fetch)

    def _take_abandon(self, session: Session, abandon: frames.Abandon, arrival: Arrival, taken: Taken) -> None:
        fetching = session.fetches.get(abandon.fetch)
        if fetching is None:
            session.answers.forget_beside(abandon.fetch)
            return
        fetching.is_abandoned = True
        for waiting in (fetching.value.fetches, session.reads):
            if waiting.pop(abandon.fetch, None) is not None:
                del session.fetches[abandon.fetch]
                end_reading(fetching, taken.released)

    def _take_cancel(self, session: Session, entry: frames.Cancel, arrival: Arrival, taken: Taken) -> None:
        cancel_rows(session, taken.released)

    def _take_forget(self, session: Session, forget: frames.Forget, arrival: Arrival, taken: Taken) -> None:
        entry = session.programs.pop(forget.program, None)
        if entry is not None:
            self._programs.let_go(session.session_id, entry)
            return
        if session.rejected_programs.pop(forget.program, None) is None:
            raise CaseError("unknown_program", f"program {forget.program} was never sent")

    def _mint_failed(self, session: Session, results: FailedResults, taken: Taken) -> Item | None:
        """Handles whose values will never exist, or the first of many.

        Their number is bounded too: those beyond are simply unknown.
        """
        room = max(2 * self._limits.handles - len(session.values), 0)
        minted = 0
        for handle, failure in islice(results.failures, min(room, MOST_FAILED)):
            mint(session, handle, _NOTHING, ValueState.FAILED).failure = failure
            minted += 1
        if minted == MOST_FAILED:
            return results
        kill(session, results.dying, taken.released)
        return None

    def _dying(self, segment: frames.Segment) -> tuple[int, ...]:
        """The handles that die with a segment."""
        validate.check_dying(segment.dying, len(segment.inputs))
        return tuple([segment.inputs[position] for position in segment.dying])

    def _failure_of_unknown(self, session: Session, handle: int, base: int) -> Failure:
        return Failure(BY_NAME["unknown_handle"], f"handle {handle} names nothing in this session", base, 0)


_NOTHING = Spec(dtypes.uint8, (0,))


_ABSENT = stand_in(_NOTHING)  # no row reads it


def _tensor_of(upload: frames.Upload, tensors: Sequence[bytes]) -> bytes | None:
    """The bytes of an upload that came with its frame. Raises CaseError if it names bytes that did not come."""
    if upload.tensor is None:
        return None
    if upload.tensor >= len(tensors):
        raise CaseError("undecodable_frame", f"tensor {upload.tensor} of a frame that carries {len(tensors)}")
    return tensors[upload.tensor]


def _misfit(position: int, actual: Spec, wanted: Spec) -> str:
    return (
        f"input {position} is {actual.dtype.name}{list(actual.shape)}; "
        f"the program takes {wanted.dtype.name}{list(wanted.shape)}"
    )
