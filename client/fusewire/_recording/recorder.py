"""Holds the ops that one thread records in one session until they are cut into segments.

Which thread may use which field:

    the tape                      the owning thread appends, without a lock, and trims under the lock; any thread reads
    the deaths                    finalisers of any thread append; the holder of the lock removes
    pinned                        pins of any thread add and remove themselves; the holder of the lock reads
    _kept                         the owning thread adds, any thread drops pins of sent ops, each by one dict operation
    checkpoint                    the owning thread reads it at each op; the holder of the lock writes
    all others                    the holder of the lock, which is taken once a segment, never for an op

The lock is never held while waiting for credit or for a value.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from concurrent.futures import Future
from threading import RLock
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from fusewire._recording.cutter import (
    HISTORY_OPS,
    LARGEST_SEGMENT_OPS,
    LEAST_SEGMENT_OPS,
    Cutter,
    Past,
    Piece,
    Reach,
    within,
)
from fusewire._recording.implementation import ThreadTape
from fusewire._recording.loop_runs import kept_of, run_ends
from fusewire._recording.pinned_handles import HandlePin, PinnedHandles
from fusewire._recording.segments import Liveness, Pattern, Structure, liveness_of, spread_over_parts, structure_of
from fusewire._recording.signature import signature_of
from fusewire._recording.source_lines import SourceLines, user_source_line
from fusewire._recording.tape import Integers, places_of_signatures, split
from fusewire_protos.frames import FIRST_UPLOAD, HANDLES_PER_RECORDER, Scalar
from fusewire_protos.v1 import fusewire_pb2 as wire

_KNOWN_PATTERNS = 256
_MOST_SPREAD_BYTES = 1 << 20  # of a segment's results that are stored only so that its program is a known one
_TRIMMED_AT_RECORDS = 4 * HISTORY_OPS
_AGE_NS = 1_000_000
_AGE_WITHIN_BODY_NS = 25_000_000  # longer than a descheduled thread mostly takes to go on with the body


class Owner(Protocol):
    """The methods of a session that recording calls, from the threads that record."""

    @property
    def is_credit_free(self) -> bool:
        """Returns whether nothing of the session is in flight."""

    @property
    def limits(self) -> wire.Limits:
        """Returns the server's limits for this session."""

    def recorder(self) -> Recorder:
        """Returns the calling thread's recorder."""

    def array(self, data: Any, dtype: Any = None) -> Any:
        """Uploads `data`; may wait for credit."""

    def fetch(self, array: Any) -> Future[npt.NDArray[Any]]:
        """Returns a future of the value; may wait for credit."""

    def read(self, array: Any, timeout: float | None) -> npt.NDArray[Any]:
        """Waits for the value and returns it. Raises WaitTimeout."""

    def check_open(self) -> None:
        """Raises the error that ended the session, if the session has ended."""

    def note_unsent(self) -> None:
        """Notes that ops have begun to wait."""

    def flush_settled(self, recorder: Recorder) -> bool:
        """Sends settled pieces; may wait for credit. Returns False if there is none and the caller must not wait."""

    def publish(self, recorder: Recorder, handle: int) -> None:
        """Sends the op that makes `handle` if this op is unsent; may wait for credit."""


class Draft(NamedTuple):
    """A segment that is not committed. A draft may be dropped and made again, because its ops still count as unsent."""

    piece: Piece
    first: int
    structure: Structure
    liveness: Liveness
    values: list[Scalar]
    later: Integers  # the records behind the piece


class _Unsent(NamedTuple):
    """The unsent records as flat integers, up to the op before number `end`."""

    records: Integers
    end: int  # the number of the op behind the last record


class Recorder(ThreadTape):
    """Records for the thread with the identifier `thread`. `index` is 1 or more, and unique in the session."""

    __slots__ = (
        "_cutter",
        "_dead",
        "_kept",
        "_mark",
        "_next_look",
        "_next_upload",
        "_patterns",
        "_source_lines",
        "_unsent",
        "_waiting_since_ns",
        "array_bytes",
        "first",
        "lock",
        "owner",
        "pinned",
        "sent",
    )

    def __init__(self, owner: Owner, index: int, thread: int, *, is_debugging: bool) -> None:
        first = index * HANDLES_PER_RECORDER + 1
        # Zero makes every op call `on_checkpoint`: while debugging, and once the session has ended.
        super().__init__(thread, first, 0 if is_debugging else first)
        self.owner = owner
        self.array_bytes = owner.limits.array_bytes  # how large an array may be
        self.lock = RLock()  # reentrant, because a finaliser that records may interrupt the thread that holds it
        self.first = first
        self.sent = self.first  # all ops with smaller numbers are in segments
        self.pinned: PinnedHandles = {}  # the deaths of these handles are not reported yet
        self._mark = self.first
        self._next_look = self.first
        self._next_upload = index * HANDLES_PER_RECORDER + FIRST_UPLOAD
        self._cutter = Cutter()
        self._unsent = _Unsent(np.empty(0, np.int64), self.first)
        self._dead: Integers = np.empty(0, np.int64)  # handles known to be dead and not yet reported
        self._kept: dict[tuple[int, int], list[HandlePin]] = {}  # by the op that needs the pins, until it is sent
        self._patterns: OrderedDict[bytes, Pattern] = OrderedDict()  # by the signatures of pieces
        self._source_lines = SourceLines()
        self._waiting_since_ns: int | None = None  # when the first unsent op was noticed

    # ---- the recording thread ----

    def on_checkpoint(self, number: int) -> None:
        """Checks that the session is open, notes the source line of the op just recorded, and sends what is settled.

        `number` is the number of this op. The method is called if `number` is `checkpoint` or more.
        """
        self.owner.check_open()
        self._source_lines.note(number, user_source_line())
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

    def mint_upload(self) -> int:
        """Returns a new handle for an upload. Called in the recording thread only."""
        self._next_upload += 1
        return self._next_upload - 1

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
        return self.sent <= handle < self.next_number

    def source_line(self, number: int) -> str:
        """Returns the line of the user's code that recorded op `number`, as text; empty if the line is not known."""
        found = self._source_lines.find(number)
        return "" if found is None else str(found)

    def end(self) -> None:
        """Makes every further op of the recording thread check whether the session is open. The check raises."""
        self.checkpoint = 0

    # ---- under the lock ----

    def draft(self, reach: Reach) -> Draft | None:
        """Drafts the next segment. Returns None if the unsent ops should wait."""
        if not self.has_unsent:
            self._cutter.note_end(reach)
            return None
        if not self._cutter.may_cut(self.next_number - self.sent, reach):
            return None
        deaths = self.deaths  # read before the tape, so that the tape shows the last use of each dead handle
        unsent, end = self._hear()
        places = places_of_signatures(unsent)

        def look_back(ops: int) -> Past:
            return Past(split(self.between(end - ops, end)), end - ops)

        piece = self._cutter.next_piece(unsent[places], reach, self._least_ops, look_back)
        if piece is None:
            return None
        self._take_deaths(deaths)
        draft = self._draw(self._fitting(piece, unsent, places), unsent, places)
        shorter = self._ending_with_a_run(draft)
        if shorter is not None:
            draft = self._draw(shorter, unsent, places)
        return draft._replace(liveness=_spread(draft, unsent[places[: draft.piece.ops]]))

    def commit(self, draft: Draft) -> None:
        """Notes that `draft` is sent. The lock has been held since `draft` was made.

        May be called again after an interruption.
        """
        self._dead = draft.liveness.waiting
        self._unsent = self._unsent._replace(records=draft.later)
        if self.sent == draft.first:
            self._cutter.cut(draft.piece)
            self.sent = draft.first + draft.piece.ops
        self._drop_sent_pins()
        self._waiting_since_ns = time.monotonic_ns() if self.has_unsent else None
        self._set_marks()

    def take_frees(self) -> list[int]:
        """Returns the dead handles that no unsent op takes. From now on they count as reported."""
        self._take_deaths(self.deaths)
        if not len(self._dead):
            return []
        liveness = liveness_of(self.sent, 0, (), self._dead, self._hear().records)
        self._dead = liveness.waiting
        return liveness.freed

    def due(self, now_ns: int) -> Reach | None:
        """Returns how much may be cut because of the age of the unsent ops, or None if they are too young."""
        if not self.has_unsent:
            return None
        if self._waiting_since_ns is None:
            self._waiting_since_ns = now_ns
        age_ns = now_ns - self._waiting_since_ns
        if age_ns < _AGE_NS:
            return None
        return Reach.PAUSED if age_ns < _AGE_WITHIN_BODY_NS else Reach.AGED

    def ripens_in_ns(self, now_ns: int) -> int:
        """Returns in how many ns the unsent ops are old enough to be cut: at most the millisecond that ops may wait."""
        if not self.has_unsent or self._waiting_since_ns is None:
            return _AGE_NS
        return self._waiting_since_ns + _AGE_NS - now_ns

    @property
    def _least_ops(self) -> int:
        """Returns the fewest ops that are worth sending while a loop runs: few if the device idles, else many."""
        return LEAST_SEGMENT_OPS if self.owner.is_credit_free else LARGEST_SEGMENT_OPS

    def _draw(self, piece: Piece, unsent: Integers, places: Integers) -> Draft:
        here, later = _split(unsent, places, piece.ops)
        structure = self._structure(here, self.sent, unsent[places[: piece.ops]])
        liveness = liveness_of(self.sent, piece.ops, structure.inputs, self._dead, later)
        return Draft(piece, self.sent, structure, liveness, self.values_of(here), later)

    def _ending_with_a_run(self, draft: Draft) -> Piece | None:
        """Returns a shorter piece if a run that ends within the draft's piece is to end the piece, else None."""
        piece = draft.piece
        if piece.bodies < 2:
            return None
        kept, run_ops = draft.liveness.kept, piece.ops // piece.runs
        ends = run_ends(draft.structure.key, piece.bodies, kept_of(kept, piece.ops // piece.bodies, piece.bodies))
        in_runs = [(run + 1) * run_ops for run in kept_of(kept, run_ops, piece.runs).parts_of_few]
        return self._cutter.end_run(ends, in_runs)

    def _fitting(self, piece: Piece, flat: Integers, places: Integers) -> Piece:
        """Returns `piece`, or a shorter piece if `piece` exceeds the ops or the operands that one program may have."""
        most_ops, most_operands = self.owner.limits.program_ops, self.owner.limits.program_operands
        if piece.ops <= most_ops and _end_of(flat, places, piece.ops) - piece.ops <= most_operands:
            return piece
        ends = np.append(places, len(flat))[1 : piece.ops + 1] - np.arange(1, piece.ops + 1)
        return within(piece, ends, most_ops=most_ops, most_operands=most_operands)

    def _structure(self, flat: Integers, first: int, signatures: Integers) -> Structure:
        """Returns the structure of a piece. Keeps it, as pieces with the same signatures mostly have one structure."""
        key, ops = signatures.tobytes(), len(signatures)
        known = self._patterns.pop(key, None)
        structure = None if known is None else known.match(flat, first, ops)
        if known is None or structure is None:
            structure = structure_of(flat, first, ops)
            known = Pattern(structure)
        self._patterns[key] = known  # as the most recently used
        if len(self._patterns) > _KNOWN_PATTERNS:
            self._patterns.popitem(last=False)
        return structure

    def _take_deaths(self, count: int) -> None:
        dead = self.take_deaths(count)
        if self.pinned:
            dead = self._without_pinned(dead)
        if len(dead):
            self._dead = np.concatenate((self._dead, dead)) if len(self._dead) else dead

    def _without_pinned(self, dead: Integers) -> Integers:
        """Returns the dead handles that are not pinned for an op of another thread. Puts the pinned handles back."""
        is_pinned = np.isin(dead, list(self.pinned.copy().values()))
        for handle in dead[is_pinned].tolist():
            self.bury(handle)
        return dead[~is_pinned]

    def _drop_sent_pins(self) -> None:
        if self._kept:
            for key in [key for key in self._kept.copy() if key[0] < self.sent]:
                self._kept.pop(key, None)

    def _hear(self) -> _Unsent:
        """Adds the records since the last call to the unsent records, and returns all of these."""
        end, (known, heard) = self.next_number, self._unsent
        if end > heard:
            new = self.between(heard, end)
            self._unsent = _Unsent(np.concatenate((known, new)) if len(known) else new, end)
        return self._unsent

    def _trim(self) -> None:
        """Drops sent records that no search for a loop needs. Called in the recording thread."""
        if self.records_kept >= _TRIMMED_AT_RECORDS:
            self.trim(min(self.next_number - HISTORY_OPS, self.sent), self.sent)

    def _set_marks(self, *, least_look_ops: int = 0) -> None:
        """Sets the op at which `on_checkpoint` acts next: the first op of a segment, or one that settles a piece."""
        sent, end, least_ops = self.sent, self.next_number, self._least_ops
        boundary = sent + (self._cutter.ops_to_boundary(least_ops) or 0)
        look_ops = self._cutter.ops_to_next_look(end - sent, least_ops)
        self._next_look = sent + max(look_ops, least_look_ops) - 1
        self._mark = sent if sent == end else boundary if boundary >= end else self._next_look
        if self.checkpoint:
            self.checkpoint = self._mark


def _split(flat: Integers, places: Integers, ops: int) -> tuple[Integers, Integers]:
    """Returns the integers of the first `ops` records, and the integers of the other records."""
    end = _end_of(flat, places, ops)
    return flat[:end], flat[end:]


def _end_of(flat: Integers, places: Integers, ops: int) -> int:
    """Returns how many integers the first `ops` records take."""
    return int(places[ops]) if ops < len(places) else len(flat)


def _spread(draft: Draft, signatures: Integers) -> Liveness:
    """Returns the liveness as if the user kept of each body or run the results that the user keeps of most of them.

    So the pieces of a loop have the same live results, and are one program. Results that are kept of few bodies are
    included if all of these are small together. Such results occur where runs are too short to end pieces.
    """
    piece, liveness = draft.piece, draft.liveness
    if piece.runs < 2 or not liveness.kept:
        return liveness
    run_ops = piece.ops // piece.runs
    kept = kept_of(liveness.kept, run_ops, piece.runs)
    bytes_of_few = sum(signature_of(signatures[place]).result.spec.size_bytes for place in kept.of_few) * piece.runs
    places = kept.of_most if bytes_of_few > _MOST_SPREAD_BYTES else (*kept.of_most, *kept.of_few)
    return spread_over_parts(liveness, draft.first, places, range(0, piece.ops, run_ops))
