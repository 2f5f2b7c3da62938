"""A recorder: the ops of one thread in one session, from being recorded to being a segment.

Who may touch what:

    tape, and appending to it     the owning thread alone, without a lock; anyone may read it
    buried                        any thread's finalisers append; whoever holds the lock takes
    lent                          any thread's loans enter and leave; whoever holds the lock reads
    _kept                         the owning thread adds, any thread drops what is sent: each in one act
    checkpoint                    read by the owning thread at each op; written under the lock
    everything else               under the lock, which is taken for a segment, never for an op

The lock is never held while waiting for credit or for a value.
"""

from __future__ import annotations

import sys
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from threading import RLock
from types import FrameType
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
from fusewire._recording.loop_runs import kept_of, run_ends
from fusewire._recording.pinned_handles import HandlePin as Loan
from fusewire._recording.pinned_handles import PinnedHandles as Loans
from fusewire._recording.segments import Liveness, Pattern, Structure, liveness_of, spread_over_parts, structure_of
from fusewire._recording.signature import signature_of
from fusewire._recording.source_lines import SourceLines, user_source_line
from fusewire._recording.tape import Integers, Tape, flatten, places_of_signatures
from fusewire_protos.frames import FIRST_UPLOAD, HANDLES_PER_RECORDER, Scalar
from fusewire_protos.v1 import fusewire_pb2 as wire

_KNOWN_PATTERNS = 256
_MOST_SPREAD_BYTES = 1 << 20  # of a segment: as much may be stored in vain, so that it is of a known program
_TRIMMED_AT_RECORDS = 4 * HISTORY_OPS
# The functions that append to a tape, and the module that they are in.
_RECORDING = frozenset(("record_binary", "record_unary", "record"))
_RECORDING_MODULE = "fusewire._recording.record_op"
_AGE_NS = 1_000_000
_AGE_WITHIN_BODY_NS = 25_000_000  # a body being recorded is worth waiting for a thread that lost its turn


class Owner(Protocol):
    """A session, as recorders and recording see it; called from recording threads."""

    @property
    def is_credit_free(self) -> bool:
        """Whether nothing of the session is in flight."""

    @property
    def limits(self) -> wire.Limits:
        """What the server takes."""

    def recorder(self) -> Recorder:
        """The calling thread's recorder."""

    def array(self, data: Any, dtype: Any = None) -> Any:
        """The array of an upload; may wait for credit."""

    def fetch(self, array: Any) -> Future[npt.NDArray[Any]]:
        """The value when it is there; may wait for credit."""

    def read(self, array: Any, timeout: float | None) -> npt.NDArray[Any]:
        """Waits for the value. Raises WaitTimeout."""

    def check_open(self) -> None:
        """Raises why the session has ended, if it has."""

    def note_unsent(self) -> None:
        """Ops have begun to wait."""

    def flush_settled(self, recorder: Recorder) -> bool:
        """Sends what is settled; may wait for credit. False if there is none, and it must not wait."""

    def publish(self, recorder: Recorder, handle: int) -> None:
        """Sends the op that makes `handle` if it is unsent; may wait for credit."""


class Draft(NamedTuple):
    """A piece on its way to become a segment. Nothing has changed yet: it may be dropped and drawn up again."""

    piece: Piece
    first: int
    structure: Structure
    liveness: Liveness
    values: list[Scalar]
    later: Integers  # the records behind the piece


class _Unsent(NamedTuple):
    """What is recorded and not sent, as far as it has been taken in."""

    records: Integers
    end: int  # the number of the op behind


class Recorder:
    """Created by its session, for the thread with this identifier. `index` is from 1, unique in the session."""

    __slots__ = (
        "_cutter",
        "_dead",
        "_kept",
        "_mark",
        "_next_look",
        "_next_upload",
        "_patterns",
        "_positions",
        "_unsent",
        "_waiting_since_ns",
        "array_bytes",
        "buried",
        "bury",
        "checkpoint",
        "first",
        "lent",
        "lock",
        "owner",
        "sent",
        "tape",
        "thread",
    )

    def __init__(self, owner: Owner, index: int, thread: int, *, is_debugging: bool) -> None:
        self.owner = owner
        self.array_bytes = owner.limits.array_bytes  # how large an array may be
        self.thread = thread
        self.lock = RLock()  # reentrant: a finaliser that records may interrupt its holder
        self.first = index * HANDLES_PER_RECORDER + 1
        self.sent = self.first  # all ops below are in segments
        self.tape = Tape(self.first - 1, [], 0, [])
        self.buried: list[int] = []
        self.bury: Callable[[int], None] = self.buried.append
        self.lent: Loans = {}  # deaths of these handles wait
        # Zero makes every op stop: while debugging, and once the session has ended.
        self.checkpoint = 0 if is_debugging else self.first
        self._mark = self.first
        self._next_look = self.first
        self._next_upload = index * HANDLES_PER_RECORDER + FIRST_UPLOAD
        self._cutter = Cutter()
        self._unsent = _Unsent(np.empty(0, np.int64), self.first)
        self._dead: Integers = np.empty(0, np.int64)  # known to be dead, not yet told
        self._kept: dict[tuple[int, int], list[Loan]] = {}  # by the op that took them on, until it is sent
        self._patterns: OrderedDict[bytes, Pattern] = OrderedDict()  # by the signatures of pieces
        self._positions = SourceLines()
        self._waiting_since_ns: int | None = None  # when the first unsent op was noticed

    # ---- the recording thread ----

    def on_checkpoint(self, number: int) -> None:
        """Called with the number of the op just recorded, once that is `checkpoint` or more."""
        self.owner.check_open()
        self._positions.note(number, user_source_line())
        if number < self._mark:
            return
        if self._waiting_since_ns is None:
            self._waiting_since_ns = time.monotonic_ns()
            self.owner.note_unsent()
        is_refused = number >= self._next_look and not self.owner.flush_settled(self)
        with self.lock:
            self._trim()
            # To look at each op at all that is unsent would take ever longer.
            self._set_marks(least_look_ops=2 * (self.tape.end - self.sent) if is_refused else 0)

    def keep(self, loans: list[Loan], number: int) -> None:
        """Keeps loans of other recorders' handles until op `number` is sent."""
        self._kept[number, id(loans)] = loans
        if number < self.sent:  # by now, so that no commit need come after this
            self._drop_sent_loans()

    def mint_upload(self) -> int:
        """A handle for an upload; for the recording thread only."""
        self._next_upload += 1
        return self._next_upload - 1

    # ---- any thread ----

    def lend(self, handle: int) -> Loan:
        """Lets the death of `handle`, minted here and alive, wait for as long as the loan lives."""
        return Loan(self.lent, handle)

    @property
    def ops_recorded(self) -> int:
        return self.tape.end - self.first

    @property
    def has_unsent(self) -> bool:
        return self.tape.end > self.sent

    def is_unsent(self, handle: int) -> bool:
        """Whether `handle`, minted here, is the result of an op that is in no segment yet."""
        return self.sent <= handle < self.tape.end

    def position(self, number: int) -> str:
        """Where in the user's code op `number` was recorded, in words; empty if that is not known."""
        found = self._positions.find(number)
        return "" if found is None else str(found)

    def end(self) -> None:
        """Lets every further op of the recording thread ask the session whether it is open."""
        self.checkpoint = 0

    # ---- under the lock ----

    def draft(self, reach: Reach) -> Draft | None:
        """The next segment, or None if what is unsent should wait."""
        if not self.has_unsent:
            self._cutter.note_end(reach)
            return None
        if not self._cutter.may_cut(self.tape.end - self.sent, reach):
            return None
        deaths = len(self.buried)  # before the tape is read: what is dead now was last used on what we see of it
        tape, (unsent, end) = self.tape, self._hear()
        places = places_of_signatures(unsent)

        def look_back(ops: int) -> Past:
            return Past(tape.between(end - ops, end), end - ops)

        piece = self._cutter.next_piece(unsent[places], reach, self._least_ops, look_back)
        if piece is None:
            return None
        self._take_buried(deaths)
        draft = self._draw(self._fitting(piece, unsent, places), tape, unsent, places)
        shorter = self._ending_with_a_run(draft)
        if shorter is not None:
            draft = self._draw(shorter, tape, unsent, places)
        return draft._replace(liveness=_spread(draft, unsent[places[: draft.piece.ops]]))

    def commit(self, draft: Draft) -> None:
        """Takes note that `draft`, drawn up under this hold of the lock, has become a segment. May be begun again."""
        self._dead = draft.liveness.waiting
        self._unsent = self._unsent._replace(records=draft.later)
        if self.sent == draft.first:
            self._cutter.cut(draft.piece)
            self.sent = draft.first + draft.piece.ops
        self._drop_sent_loans()
        self._waiting_since_ns = time.monotonic_ns() if self.has_unsent else None
        self._set_marks()

    def take_frees(self) -> list[int]:
        """Dead handles that no unsent op takes; they count as told."""
        self._take_buried(len(self.buried))
        if not len(self._dead):
            return []
        liveness = liveness_of(self.sent, 0, (), self._dead, self._hear().records)
        self._dead = liveness.waiting
        return liveness.freed

    def due(self, now_ns: int) -> Reach | None:
        """What the age of the unsent ops demands to be cut."""
        if not self.has_unsent:
            return None
        if self._waiting_since_ns is None:
            self._waiting_since_ns = now_ns
        age_ns = now_ns - self._waiting_since_ns
        if age_ns < _AGE_NS:
            return None
        return Reach.PAUSED if age_ns < _AGE_WITHIN_BODY_NS else Reach.AGED

    def ripens_in_ns(self, now_ns: int) -> int:
        """How long until the age of the unsent ops matters; never longer than ops may wait at all."""
        if not self.has_unsent or self._waiting_since_ns is None:
            return _AGE_NS
        return self._waiting_since_ns + _AGE_NS - now_ns

    @property
    def _least_ops(self) -> int:
        """The smallest segment worth sending while a loop runs: small if the device idles, else large."""
        return LEAST_SEGMENT_OPS if self.owner.is_credit_free else LARGEST_SEGMENT_OPS

    def _draw(self, piece: Piece, tape: Tape, unsent: Integers, places: Integers) -> Draft:
        here, later = _split(unsent, places, piece.ops)
        structure = self._structure(here, self.sent, unsent[places[: piece.ops]])
        liveness = liveness_of(self.sent, piece.ops, structure.inputs, self._dead, later)
        return Draft(piece, self.sent, structure, liveness, tape.values_of(here), later)

    def _ending_with_a_run(self, draft: Draft) -> Piece | None:
        """Less of the piece, if a run of the loop ends within it and it is to end there."""
        piece = draft.piece
        if piece.bodies < 2:
            return None
        kept, run_ops = draft.liveness.kept, piece.ops // piece.runs
        ends = run_ends(draft.structure.key, piece.bodies, kept_of(kept, piece.ops // piece.bodies, piece.bodies))
        in_runs = [(run + 1) * run_ops for run in kept_of(kept, run_ops, piece.runs).parts_of_few]
        return self._cutter.end_run(ends, in_runs)

    def _fitting(self, piece: Piece, flat: Integers, places: Integers) -> Piece:
        """`piece`, or less of it if one program may not have as many ops, or as many operands of them."""
        most_ops, most_operands = self.owner.limits.program_ops, self.owner.limits.program_operands
        if piece.ops <= most_ops and _end_of(flat, places, piece.ops) - piece.ops <= most_operands:
            return piece
        ends = np.append(places, len(flat))[1 : piece.ops + 1] - np.arange(1, piece.ops + 1)
        return within(piece, ends, most_ops=most_ops, most_operands=most_operands)

    def _structure(self, flat: Integers, first: int, signatures: Integers) -> Structure:
        """Pieces of the same signatures are mostly of one structure, whatever has come between them."""
        key, ops = signatures.tobytes(), len(signatures)
        known = self._patterns.pop(key, None)
        structure = None if known is None else known.match(flat, first, ops)
        if known is None or structure is None:
            structure = structure_of(flat, first, ops)
            known = Pattern(structure)
        self._patterns[key] = known  # the last again
        if len(self._patterns) > _KNOWN_PATTERNS:
            self._patterns.popitem(last=False)
        return structure

    def _take_buried(self, deaths: int) -> None:
        taken = self.buried[:deaths]
        del self.buried[:deaths]
        if self.lent:
            taken = self._without_lent(taken)
        if taken:
            dead = np.array(taken, np.int64)
            self._dead = np.concatenate((self._dead, dead)) if len(self._dead) else dead

    def _without_lent(self, dead: list[int]) -> list[int]:
        """Those of the dead that no op of another thread is about to take; the others are buried once more."""
        lent = set(self.lent.copy().values())
        self.buried.extend([handle for handle in dead if handle in lent])
        return [handle for handle in dead if handle not in lent]

    def _drop_sent_loans(self) -> None:
        if self._kept:
            for key in [key for key in self._kept.copy() if key[0] < self.sent]:
                self._kept.pop(key, None)

    def _hear(self) -> _Unsent:
        """Takes in what has been recorded since the last time."""
        tape, (known, heard) = self.tape, self._unsent
        end = tape.end
        if end > heard:
            new = flatten(tape.between(heard, end))
            self._unsent = _Unsent(np.concatenate((known, new)) if len(known) else new, end)
        return self._unsent

    def _trim(self) -> None:
        """Drops sent records that no search needs; called by the recording thread, which owns the tape."""
        tape = self.tape
        if len(tape.records) < _TRIMMED_AT_RECORDS or _is_interrupting():
            return
        count, sent_records = len(tape.records), self.sent - tape.origin - 1
        trimmed = tape.without(min(count - HISTORY_OPS, sent_records), unsent=self.sent)
        if len(tape.records) == count:  # else a signal handler has recorded meanwhile
            self.tape = trimmed

    def _set_marks(self, *, least_look_ops: int = 0) -> None:
        """Where the recording thread is to stop next: at the first op of a segment, and where a piece is settled."""
        sent, end, least_ops = self.sent, self.tape.end, self._least_ops
        boundary = sent + (self._cutter.ops_to_boundary(least_ops) or 0)
        look_ops = self._cutter.ops_to_next_look(end - sent, least_ops)
        self._next_look = sent + max(look_ops, least_look_ops) - 1
        self._mark = sent if sent == end else boundary if boundary >= end else self._next_look
        if self.checkpoint:
            self.checkpoint = self._mark


def _split(flat: Integers, places: Integers, ops: int) -> tuple[Integers, Integers]:
    """The first `ops` records, and those behind them."""
    end = _end_of(flat, places, ops)
    return flat[:end], flat[end:]


def _end_of(flat: Integers, places: Integers, ops: int) -> int:
    """How many integers the first `ops` records are."""
    return int(places[ops]) if ops < len(places) else len(flat)


def _spread(draft: Draft, signatures: Integers) -> Liveness:
    """As if what the user keeps of most bodies, or runs, were kept of each; and what is kept of few, if it is small.

    The latter is left where runs are too short to end pieces.
    """
    piece, liveness = draft.piece, draft.liveness
    if piece.runs < 2 or not liveness.kept:
        return liveness
    run_ops = piece.ops // piece.runs
    kept = kept_of(liveness.kept, run_ops, piece.runs)
    bytes_of_few = sum(signature_of(signatures[place]).result.spec.size_bytes for place in kept.of_few) * piece.runs
    places = kept.of_most if bytes_of_few > _MOST_SPREAD_BYTES else (*kept.of_most, *kept.of_few)
    return spread_over_parts(liveness, draft.first, places, range(0, piece.ops, run_ops))


def _is_interrupting() -> bool:
    """Whether an op is being recorded further down this thread's stack, which still holds the tape.

    A finaliser or a signal handler that records ops may have come between.
    """
    depth = 0
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and depth < 2:
        is_ours = frame.f_globals.get("__name__") == _RECORDING_MODULE  # a user's function may be called `record` too
        depth += is_ours and frame.f_code.co_name in _RECORDING
        frame = frame.f_back
    return depth > 1
