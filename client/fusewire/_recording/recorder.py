"""Holds the ops that one thread records in one session until they are cut into segments.

Which thread may use which field:

    the tape                      the owning thread appends, without a lock, and trims under the lock; any thread reads
    the deaths                    finalisers of any thread append; the holder of the lock removes
    pinned                        pins of any thread add and remove themselves; the holder of the lock reads
    _kept                         the owning thread adds, any thread drops pins of sent ops, each by one dict operation
    foreign                       the owning thread adds and finds; the holder of the lock replaces
    notes                         the owning thread writes and reads
    checkpoint                    the owning thread reads it at each op; the holder of the lock writes
    all others                    the holder of the lock, which is taken once a segment, never for an op

The lock is never held while waiting for credit or for a value.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from threading import RLock
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from fusewire._errors import QuotaExceeded, RequestError
from fusewire._recording.bodies.recorded_body import RecordedBody
from fusewire._recording.cutting.cutter import (
    HISTORY_OPS,
    LARGEST_LOOP_OPS,
    LARGEST_SEGMENT_OPS,
    LEAST_SEGMENT_OPS,
    CutScope,
    Cutter,
    Piece,
    RecentRecords,
)
from fusewire._recording.cutting.drafts import Draft, Drafter, LoopForm, Unsent
from fusewire._recording.cutting.known_bodies import Found
from fusewire._recording.cutting.known_step import KnownStep
from fusewire._recording.cutting.segments import liveness_of, structure_of
from fusewire._recording.integer_scans import INSIDE, places_of_signatures
from fusewire._recording.pinned_handles import ForeignHandles, HandlePin, PinnedHandles
from fusewire._recording.places import source_line
from fusewire._recording.recorded_ops import ThreadTape
from fusewire._recording.signature import signature_of
from fusewire._recording.source_lines import SourceLine, user_source_line
from fusewire._recording.stepped_integer import SteppedInteger
from fusewire._recording.tape import Integers
from fusewire_protos.frames import FIRST_UPLOAD, HANDLES_PER_RECORDER
from fusewire_protos.programs.limits import MOST_LEAVES, MOST_LIVE
from fusewire_protos.v1 import fusewire_pb2 as wire

_NO_RECORDS: Integers = np.empty(0, np.int64)
_TRIMMED_AT_RECORDS = 4 * HISTORY_OPS
_PARTS_OF_CREDIT = 4  # a segment of a loop waits until it takes one, so that the next ones have credit too
_NEVER = sys.maxsize  # the number of no op
_PAUSE_NS = 1_000_000  # after which the unsent ops are sent, as the thread has something else to do
# After which they are sent although the thread goes on recording. PyTorch records a step in a millisecond, and a
# segment for each step would take most of that again.
_LONGEST_WAIT_NS = 8_000_000


class Owner(Protocol):
    """The methods of a session that recording calls, from the threads that record."""

    @property
    def is_idle(self) -> bool:
        """Returns whether nothing is in flight."""

    @property
    def credit_ops(self) -> int:
        """Returns how many ops may be in flight."""

    @property
    def limits(self) -> wire.Limits:
        """Returns the server's limits for this session."""

    @property
    def index_checks(self) -> Any:
        """Returns the checks of indices on the server if the session debugs, else None."""

    def recorder(self) -> Recorder:
        """Returns the calling thread's recorder."""

    def array(self, data: Any, dtype: Any = None) -> Any:
        """Uploads `data`; may wait for credit."""

    def fetch(self, array: Any) -> Future[npt.NDArray[Any]]:
        """Returns a future of the value; may wait for credit."""

    def read(self, array: Any, timeout: float | None) -> npt.NDArray[Any]:
        """Waits for the value and returns it. Raises WaitTimeout."""

    def explain(self, array: Any, *, timeout: float | None = None) -> Any:
        """Explains the work that made an array, by a round trip."""

    def check_open(self) -> None:
        """Raises the error that ended the session, if the session has ended."""

    def note_unsent(self) -> None:
        """Notes that ops or small uploads have begun to wait. They are sent at the next tick at the latest."""

    def flush_settled(self, recorder: Recorder) -> bool:
        """Sends settled pieces; may wait for credit. Returns False if there is none and the caller must not wait."""

    def flush_all(self, recorder: Recorder) -> None:
        """Sends all ops of a recorder; may wait for credit."""

    def pin(self, handle: int) -> HandlePin:
        """Pins a live handle, whichever thread minted it. Its death is not reported while the pin exists."""

    def send_body(self, recorder: Recorder, draft: Callable[[], Draft]) -> None:
        """Sends the segment or loop that `draft` makes under the recorder's lock; may wait for credit."""

    def publish(self, recorder: Recorder, handle: int) -> None:
        """Sends the op that makes `handle` if this op is unsent; may wait for credit."""


class Counter(NamedTuple):
    """The counter of a loop whose body is being recorded: 0, 1, … `iterations` − 1."""

    handle: int
    iterations: int


class _UnsentRecords:
    """The unsent records as flat integers, up to the op before number `end`.

    Records that follow others are joined to them in the other of two buffers, which are used again, because memory that
    is new to the process takes longer than what is done with it.
    """

    __slots__ = ("_buffer", "_spare", "end", "records")

    def __init__(self, end: int) -> None:
        self.records = _NO_RECORDS
        self.end = end  # the number of the op behind the last record
        self._buffer = _NO_RECORDS  # of the records
        self._spare = _NO_RECORDS  # the other buffer

    def add(self, new: Integers, end: int) -> None:
        """Adds records. If a signal handler raises here, all or none are added."""
        if not len(self.records):
            self.records, self.end = new, end
            return
        count = len(self.records) + len(new)
        buffer = self._spare if count <= len(self._spare) else np.empty(2 * count, np.int64)
        records = np.concatenate((self.records, new), out=buffer[:count])
        self.records, self.end, self._buffer, self._spare = records, end, buffer, self._buffer


class Recorder(ThreadTape):
    """Records for the thread with the identifier `thread`. `index` is 1 or more, and unique in the session."""

    __slots__ = (
        "_collected",
        "_cutter",
        "_dead",
        "_drafter",
        "_first_of_body",
        "_first_upload_of_body",
        "_kept",
        "_known_step",
        "_least_ops_if_busy",
        "_least_ops_if_idle",
        "_mark",
        "_next_look",
        "_next_upload",
        "_recorded_until",
        "_unknown_to_server",
        "_waiting_since_ns",
        "array_bytes",
        "counter",
        "first",
        "function",
        "lock",
        "owner",
        "pinned",
        "sent",
    )

    def __init__(self, owner: Owner, index: int, thread: int) -> None:
        first = index * HANDLES_PER_RECORDER + 1
        super().__init__(thread, first, first)
        self.owner = owner
        self.array_bytes = owner.limits.array_bytes  # how large an array may be
        ops = owner.credit_ops // _PARTS_OF_CREDIT
        self._least_ops_if_idle = max(min(ops, LARGEST_SEGMENT_OPS), LEAST_SEGMENT_OPS)
        self._least_ops_if_busy = max(min(ops, LARGEST_LOOP_OPS), LARGEST_SEGMENT_OPS)
        self.lock = RLock()  # reentrant, because a finaliser that records may interrupt the thread that holds it
        self.first = first
        self.sent = self.first  # all ops with smaller numbers are in segments
        self.pinned: PinnedHandles = {}  # the deaths of these handles are not reported yet
        self._mark = self.first
        self._next_look = self.first
        self._next_upload = index * HANDLES_PER_RECORDER + FIRST_UPLOAD
        self._cutter = Cutter()
        self._drafter = Drafter(owner.limits)
        self._known_step: KnownStep | None = None  # that the last read ended
        self.counter: Counter | None = None  # of the body; the recording thread writes it
        self.function: Any = None  # the `FunctionRecording`, while no loop in it is recorded; for that thread alone
        self._first_of_body = self.first
        self._first_upload_of_body = self._next_upload
        # Live handles that the server does not know: of parameters, and of results that stay within a body.
        self._unknown_to_server: set[int] = set()
        self._collected = _UnsentRecords(self.first)
        self._dead: Integers = np.empty(0, np.int64)  # handles known to be dead and not yet reported
        self._kept: dict[tuple[int, int], list[HandlePin]] = {}  # by the op that needs the pins, until it is sent
        self._waiting_since_ns: int | None = None  # when the first unsent op was noticed
        self._recorded_until = (self.first, 0)  # the number of the next op, and when the I/O thread first saw it

    # ---- the recording thread ----

    def on_checkpoint(self, number: int) -> None:
        """Checks that the session is open, and sends what is settled.

        `number` is the number of the op just recorded. The method is called if `number` is `checkpoint` or more.
        """
        self.owner.check_open()
        if number < self._mark:
            return
        if self._waiting_since_ns is None:
            self._waiting_since_ns = time.monotonic_ns()
            self.owner.note_unsent()
        is_refused = number >= self._next_look and not self.owner.flush_settled(self)
        is_drafting = self.lock._is_owned()  # type: ignore[attr-defined]  # then this code has interrupted the thread
        with self.lock:
            if not is_drafting:
                self._trim()
            # If nothing could be sent, looks again at twice as many unsent ops. A look at each op takes quadratic time.
            self._set_marks(least_look_ops=2 * (self.next_number - self.sent) if is_refused else 0)

    def keep(self, pins: list[HandlePin], number: int) -> None:
        """Keeps pins of other recorders' handles until op `number` is sent."""
        self._kept[number, id(pins)] = pins
        if number < self.sent:  # then there may be no later commit to drop the pins
            self._drop_sent_pins()

    def _keep_foreign_pins(self) -> None:
        """Keeps the pins of foreign handles until all ops recorded so far are sent. Under the lock.

        The recording thread may take such a handle until `foreign` is replaced. Only after that, the ops are counted.
        """
        if self.foreign:
            foreign = self.foreign
            self._kept[_NEVER, id(foreign)] = foreign.pins
            self.foreign = ForeignHandles()
            self._kept[self.next_number - 1, id(foreign)] = foreign.pins
            del self._kept[_NEVER, id(foreign)]

    def mint_upload(self) -> int:
        """Returns a new handle for an upload. Called in the recording thread only."""
        self._next_upload += 1
        return self._next_upload - 1

    # ---- the recording thread: bodies of loops and functions ----

    def begin_body(self) -> None:
        """Begins to record a body. All earlier ops are sent. The ops of the body wait until `draft_body` takes them."""
        self.is_in_body = True
        self._first_of_body = self.next_number
        self._first_upload_of_body = self._next_upload

    @property
    def firsts_of_body(self) -> tuple[int, int]:
        """Returns the handles from which on the results and the uploads are those of the body."""
        return self._first_of_body, self._first_upload_of_body

    def go_on_with_body(self, firsts: tuple[int, int]) -> None:
        """Goes on with a body that ended for a while, and had these `firsts_of_body`."""
        self.is_in_body = True
        self._first_of_body, self._first_upload_of_body = firsts

    def is_of_body(self, handle: int) -> bool:
        """Returns whether a value has come to be within the body: by an op, by an upload, or as a parameter."""
        is_result = self._first_of_body <= handle < self.next_number
        return is_result or self._first_upload_of_body <= handle < self._next_upload

    def mint_parameter(self) -> int:
        """Returns a new handle that stands for a value which is bound when the body is used."""
        handle = self.mint_upload()
        self._unknown_to_server.add(handle)
        return handle

    def forget_parameters(self, handles: Sequence[int]) -> None:
        """Forgets parameters of which there are no arrays."""
        with self.lock:
            self._unknown_to_server.difference_update(handles)

    def drop_first_of_body(self) -> bool:
        """Drops the first op of the body if no other op takes its result. Returns whether it did."""
        with self.lock:
            unsent = self._collect_unsent().records
            first_ops = places_of_signatures(unsent)[:2].tolist()
            if len(first_ops) < 2 or (unsent == self.sent).any():
                return False
            self._collected.records = unsent[first_ops[1] :]
            self._unknown_to_server.add(self.sent)
            self.sent += 1
            return True

    def end_body(self) -> None:
        """Ends the body. Ops of the body that are not sent are given up: their results will never exist."""
        self.counter = None
        with self.lock:
            self.is_in_body = False
            if self.has_unsent:
                self._take_deaths(self.deaths)
                is_given_up = (self._dead >= self.sent) & (self._dead < self.next_number)
                self._unknown_to_server.update(
                    {*range(self.sent, self.next_number)}.difference(self._dead[is_given_up].tolist())
                )
                self._dead = self._dead[~is_given_up]
                self.drop_all()
                self.repeats.clear()
                self.sent = end = self.next_number
                self._collected.records, self._collected.end = _NO_RECORDS, end
                self._cutter = Cutter()
                self._set_marks()

    def draft_body(self, results: Sequence[int]) -> Draft:
        """Drafts the body that has been recorded; its parameters are among its inputs. Under the lock.

        `results` are the handles of the results that stay.
        """
        deaths = self.deaths
        collected = self._collect_unsent()
        unsent, end = collected.records, collected.end
        self._take_deaths(deaths)
        if self.pinned and len(
            self._dead
        ):  # an upload may have died, and its death been taken, before its pin was made
            self._dead = self._without_pinned(self._dead)
        first, ops = self.sent, end - self.sent
        self._check_fits(ops, len(unsent) - ops)
        structure = structure_of(unsent, first, ops)
        if len(structure.inputs) > MOST_LEAVES:
            raise QuotaExceeded(f"a body of {len(structure.inputs)} inputs; the most is {MOST_LEAVES}")
        liveness = liveness_of(first, ops, structure.inputs, self._dead, _NO_RECORDS)
        live = tuple(sorted({handle - first for handle in results}))
        if len(live) > MOST_LIVE:
            raise QuotaExceeded(f"a body of {len(live)} results; the most is {MOST_LIVE}")
        self._unknown_to_server.update([first + index for index in liveness.live if index not in live])
        values = self.values_of(unsent)
        return Draft(Piece(ops, 1), first, structure, liveness._replace(live=live), values, _NO_RECORDS, is_body=True)

    def draft_loop(
        self, bound: Mapping[int, int], carried: Mapping[int, int], iterations: int, *, index_steps: bool
    ) -> Draft:
        """Drafts a loop whose body has been recorded. Under the lock.

        For each parameter, `bound` holds the handle that it is in the first iteration, and `carried` the result that it
        is in the next.
        """
        draft = self.draft_body([*carried.values()])
        place = {handle: position for position, handle in enumerate(draft.structure.inputs)}
        pairs = [(place[each], INSIDE + result - draft.first) for each, result in carried.items() if each in place]
        kept = (1,) * len(draft.liveness.live)
        of_index = ((0, 1),) if index_steps else ()
        of_starts = [(place, each.step) for place, each in enumerate(draft.values) if isinstance(each, SteppedInteger)]
        loop_form = LoopForm(iterations, tuple(sorted(pairs)), 0, kept, values=(*of_index, *of_starts))
        return draft._replace(structure=draft.structure.bound(bound), loop_form=loop_form)

    def _check_fits(self, ops: int, operands: int) -> None:
        limits = self.owner.limits
        if ops > limits.program_ops:
            raise QuotaExceeded(f"a body of {ops} ops; limits.program_ops = {limits.program_ops}")
        if operands > limits.program_operands:
            raise QuotaExceeded(f"a body of {operands} operands; limits.program_operands = {limits.program_operands}")

    def inputs_of_body(self) -> list[int]:
        """Returns the handles that the ops of the recorded body take, parameters among them."""
        with self.lock:
            return structure_of(self._collect_unsent().records, self.sent, self.next_number - self.sent).inputs

    def recorded_body(self, results: Sequence[int]) -> RecordedBody:
        """Returns the body that has been recorded, so that it can be recorded again. It is not sent itself.

        `results` are the handles of the results that are handed out at each use.
        """
        with self.lock:
            draft = self.draft_body(results)
        places = [self.place_of_op(draft.first + index) for index in range(draft.piece.ops)]
        return RecordedBody.of(draft.structure, draft.liveness.live, draft.values, places)

    # ---- any thread ----

    def pin(self, handle: int) -> HandlePin:
        """Pins `handle`, a live handle that was minted here. Its death is not reported while the pin exists."""
        return HandlePin(self.pinned, handle)

    @property
    def ops_recorded(self) -> int:
        return self.next_number - self.first

    @property
    def has_unsent(self) -> bool:
        return self.next_number > self.sent

    def is_unsent(self, handle: int) -> bool:
        """Returns whether `handle`, which this recorder minted, is the result of an op that is in no segment yet."""
        return self.sent <= handle < self.next_number or handle in self._unknown_to_server

    def source_line(self, number: int) -> SourceLine | None:
        """Returns the line of the user's code that recorded op `number`; None if the line is not known."""
        return source_line(self.place_of_op(number))

    def unsent_ops(self, most: int) -> tuple[int, list[tuple[str, int]]]:
        """Returns how many ops are in no segment yet, and the names and numbers of the last ones, at most `most`."""
        with self.lock:
            end = self.next_number
            first = max(self.sent, end - most)
            return end - self.sent, [*zip(self.names_of(first, end), range(first, end), strict=True)]

    def end(self) -> None:
        """Makes every further op of the recording thread check whether the session is open. The check raises."""
        self.checkpoint = 0

    # ---- under the lock ----

    def names_of(self, first: int, end: int) -> tuple[str, ...]:
        """Returns the names of the ops from number `first` up to `end`, which the tape must still hold."""
        records = self.between(first, end)
        return tuple([signature_of(number).op.name for number in records[places_of_signatures(records)].tolist()])

    def draft(self, scope: CutScope) -> Draft | None:
        """Drafts the next segment. Returns None if the unsent ops should wait."""
        if self.is_in_body:
            self._refuse_in_body(scope)
            return None
        if not self.has_unsent:
            self._cutter.note_end(scope)
            return None
        if not self._cutter.may_cut(self.next_number - self.sent, scope):
            return None
        deaths = self.deaths  # read before the tape, so that the tape shows the last use of each dead handle
        unsent = self._collect_unsent()
        if scope is CutScope.EVERYTHING and (step := self._known_step) is not None:
            self._take_deaths(deaths)
            deaths = 0
            if (draft := self._draft_known_step(step, unsent.records)) is not None:
                return draft
        return self._draft_anew(unsent, scope, deaths)

    def _draft_anew(self, collected: _UnsentRecords, scope: CutScope, deaths: int) -> Draft | None:
        unsent, end = collected.records, collected.end
        places = places_of_signatures(unsent)

        def look_back(ops: int) -> RecentRecords:
            return RecentRecords(self.between(end - ops, end), end - ops)

        piece = self._cutter.next_piece(unsent[places], scope, self._least_ops, look_back, self._next_repeat())
        if piece is None:
            return None
        self._take_deaths(deaths)
        drafted = Unsent(unsent, places, self.sent, self._dead, self.values_of)
        draft = self._drafter.draft(piece, drafted, self._cutter.rotate, self._handed_out(piece))
        if scope is CutScope.EVERYTHING:
            self._known_step = KnownStep.of(draft, self._cutter.body)
        return draft

    def _next_repeat(self) -> Found | None:
        """Returns the first recorded body that was recorded again and is wholly unsent, if any."""
        return Found(self.repeats[0][0] - self.sent, self.repeats[0][1].signatures) if self.repeats else None

    def _handed_out(self, piece: Piece) -> frozenset[int]:
        """Returns the results that a recorded body hands out at each use, if a piece consists of such a body."""
        if not self.repeats:
            return frozenset()
        first, body = self.repeats[0]
        is_of_body = first == self.sent and piece.ops == piece.bodies * len(body.signatures)
        return frozenset(body.live) if is_of_body else frozenset()

    def _draft_known_step(self, step: KnownStep, unsent: Integers) -> Draft | None:
        """Drafts all unsent ops if they are those of a step that the last read ended, and else returns None."""
        if len(unsent) != len(step.structure) or not self._cutter.take_body(step.body):
            return None
        return step.again(unsent, self.sent, self._dead, self.values_of)

    def commit(self, draft: Draft) -> None:
        """Notes that `draft` is sent. The lock has been held since `draft` was made.

        May be called again after an interruption.
        """
        self._dead = draft.liveness.waiting
        self._collected.records = draft.later
        if self.sent == draft.first:
            if draft.is_body:
                self._cutter = Cutter()
            else:
                self._cutter.cut(draft.piece)
            self.sent = draft.first + draft.piece.ops
        while self.repeats and self.repeats[0][0] < self.sent:
            del self.repeats[0]
        self._keep_foreign_pins()
        self._drop_sent_pins()
        self._waiting_since_ns = time.monotonic_ns() if self.has_unsent else None
        self._set_marks()

    def take_frees(self) -> list[int]:
        """Returns the dead handles that no unsent op takes. From now on they count as reported."""
        self._take_deaths(self.deaths)
        if not len(self._dead):
            return []
        liveness = liveness_of(self.sent, 0, (), self._dead, self._collect_unsent().records)
        self._dead = liveness.waiting
        return liveness.freed

    def is_due(self, now_ns: int) -> bool:
        """Returns whether the unsent ops have waited long enough to be cut, but for an incomplete body at their end.

        Called in the I/O thread. So is `ripens_in_ns`.
        """
        if not self.has_unsent or self.is_in_body:
            return False
        if self._waiting_since_ns is None:
            self._waiting_since_ns = now_ns
        if self.next_number != self._recorded_until[0]:
            self._recorded_until = (self.next_number, now_ns)
        return self.ripens_in_ns(now_ns) <= 0

    def ripens_in_ns(self, now_ns: int) -> int:
        """Returns in how many ns the unsent ops will have waited long enough if no more come; negative if late."""
        if not self.has_unsent or self._waiting_since_ns is None:
            return _PAUSE_NS
        return min(self._recorded_until[1] + _PAUSE_NS, self._waiting_since_ns + _LONGEST_WAIT_NS) - now_ns

    @property
    def _least_ops(self) -> int:
        """Returns the fewest ops that are worth sending while a loop runs.

        A segment of a loop costs both ends the same however long it is. So while one is in flight, ops wait for its
        end, or until they are a long segment: where a server is busy, they become many. Fewer ops are sent when
        recording pauses, or they have waited for long.
        """
        return self._least_ops_if_idle if self.owner.is_idle else self._least_ops_if_busy

    def _refuse_in_body(self, scope: CutScope) -> None:
        """Raises RequestError if a value is asked for that is known only when the body runs."""
        if scope is CutScope.EVERYTHING:
            line = user_source_line()
            raise RequestError(
                f"{line.file}:{line.line} asks for a value within the body of a loop or function. The body is recorded "
                "once, before it runs, so that no such value is known: use fw.where in place of an `if` on values, "
                "fw.zeros in place of np.zeros, session.array(a)[i] in place of a[i], and slices whose bounds follow "
                "from the counter by +, - and * alone"
            )

    def _take_deaths(self, count: int) -> None:
        dead = self.take_deaths(count)
        if self.pinned:
            dead = self._without_pinned(dead)
        if self._unknown_to_server:
            dead = self._without_unknown(dead)
        if len(dead):
            self._dead = np.concatenate((self._dead, dead)) if len(self._dead) else dead

    def _without_pinned(self, dead: Integers) -> Integers:
        """Returns the dead handles that are not pinned for an op of another thread. Puts the pinned handles back."""
        is_pinned = np.isin(dead, list(self.pinned.copy().values()))
        for handle in dead[is_pinned].tolist():
            self.note_death(handle)
        return dead[~is_pinned]

    def _without_unknown(self, dead: Integers) -> Integers:
        """Returns the dead handles that the server knows or will know."""
        handles: list[int] = dead.tolist()
        known = [handle for handle in handles if handle not in self._unknown_to_server]
        self._unknown_to_server.difference_update(handles)
        return np.array(known, np.int64)

    def _drop_sent_pins(self) -> None:
        if self._kept:
            for key in [key for key in self._kept.copy() if key[0] < self.sent]:
                self._kept.pop(key, None)

    def _collect_unsent(self) -> _UnsentRecords:
        """Adds the records since the last call to the unsent records, and returns all of these."""
        end, collected = self.next_number, self._collected
        if end > collected.end:
            collected.add(self.between(collected.end, end), end)
        return collected

    def _trim(self) -> None:
        """Drops sent records that no search for a loop needs. Called in the recording thread."""
        if self.records_kept >= _TRIMMED_AT_RECORDS:
            self.trim(self.sent - HISTORY_OPS, self.sent)

    def _set_marks(self, *, least_look_ops: int = 0) -> None:
        """Sets the op at which `on_checkpoint` acts next: the first op of a segment, or one that settles a piece."""
        sent, end = self.sent, self.next_number
        if sent == end:
            self._mark, self._next_look = sent, sent + 1  # the first op sets the marks anew, and settles nothing
        else:
            boundary_ops = self._cutter.ops_to_boundary(self._least_ops)
            boundary = sent + (boundary_ops or 0)
            look_ops = self._cutter.ops_to_next_look(end - sent, boundary_ops)
            self._next_look = sent + max(look_ops, least_look_ops) - 1
            self._mark = boundary if boundary >= end else self._next_look
        if self.checkpoint:
            self.checkpoint = self._mark
