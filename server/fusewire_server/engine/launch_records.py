"""Keeps a record of 64 bytes of each submission in a ring, while somebody watches. The engine thread owns it.

Nobody watches a server most of the time. Then there is no ring, and a submission costs one comparison of numbers.
"""

from __future__ import annotations

import struct
from collections.abc import Container
from typing import NamedTuple

from fusewire_server.device.orders import Ran
from fusewire_server.programs.program_table import ProgramEntry
from fusewire_server.scheduling.coalescer import BatchEnd
from fusewire_server.scheduling.lanes import OutstandingBatch
from fusewire_server.sessions.session import Session

# The fields of a record, and the format of each in `struct` and NumPy.
FIELDS = (
    ("ended_ns", "Q"),  # on the monotonic clock
    ("device_ns", "Q"),
    ("low", "Q"),  # half of the mask of its sessions
    ("high", "Q"),  # the other half
    ("number", "I"),  # of the submission
    ("count", "I"),  # how many submissions the record is of
    ("order_ns", "f"),  # from the order to the end
    ("queue_ns", "f"),  # the longest wait of a row before the order
    ("iterations", "I"),  # of all rows
    ("result_bytes", "f"),
    ("program", "H"),
    ("rows", "H"),
    ("reason", "B"),  # why it ended there: the place in REASONS
    ("tier", "B"),
    ("device", "B"),
    ("failed", "B"),  # rows
)
RECORD = struct.Struct("<" + "".join([code for _, code in FIELDS]))
REASONS = tuple([each.value for each in BatchEnd])
MOST_RECORDS = 1 << 16
WATCHED_NS = 3_000_000_000  # how long records are kept after somebody has read them
OTHER_SESSIONS = 127  # the bit of all sessions that have none of their own
OTHER_PROGRAMS = 0  # the number of all programs that have none of their own
MOST_PROGRAMS = 4096
_HALF = (1 << 64) - 1
_NUMBER = (1 << 32) - 1
_MOST_ROWS = (1 << 16) - 1
_REASON_NUMBERS = {each: number for number, each in enumerate(BatchEnd)}


class ProgramName(NamedTuple):
    """The number of a program in records, and its learnt times: a submission of n rows takes `beside_ns + own_ns n`."""

    number: int
    digest: str
    beside_ns: float
    own_ns: float


class SessionName(NamedTuple):
    """The bit of a session in records."""

    bit: int
    session: str  # its shown id
    name: str
    tenant: str


class Records(NamedTuple):
    """Records from one position on, and what has been named or learnt since the last reading.

    `watch` tells rings apart: numbers of programs, bits of sessions and positions of one mean nothing in another.
    """

    device: int
    watch: int
    following: int  # the position after the last record
    records: bytes
    programs: tuple[ProgramName, ...]
    sessions: tuple[SessionName, ...]


class LaunchRecords:
    """The ring of one engine, for one reader."""

    def __init__(self, device: int = 0) -> None:
        """`device` is the number of the engine's device."""
        self._device = device
        self.watched_until_ns = 0
        self._watch = 0
        self._begin()

    def add(self, outstanding: OutstandingBatch, ran: Ran, now_ns: int) -> None:
        """Writes the record of a submission that has been completed."""
        batch, at_ns = outstanding.batch, outstanding.at_ns
        mask, since_ns, iterations, masks = 0, at_ns, 0, self._masks
        for row, span in batch.spans.items():
            mask |= masks.get(row.session.session_id) or self._mask(row.session)
            iterations += len(span)
            if not span.start and row.queued_at_ns < since_ns:
                since_ns = row.queued_at_ns
        rows = len(batch.spans)
        RECORD.pack_into(
            self._ring,
            self._position % MOST_RECORDS * RECORD.size,
            now_ns,
            ran.device_ns,
            mask & _HALF,
            mask >> 64,
            ran.number & _NUMBER,
            1,
            max(now_ns - at_ns, 0),
            at_ns - since_ns,
            min(iterations, _NUMBER),
            batch.entry.program.live_bytes * rows,
            self._number(batch.entry),
            min(rows, _MOST_ROWS),
            _REASON_NUMBERS[batch.ended_by],
            0 if outstanding.loaded is None else 1,
            self._device & 0xFF,
            min(len(ran.failed), 0xFF),
        )
        self._position += 1

    def forget_unwatched(self, now_ns: int) -> None:
        """Gives back the memory of a ring that nobody reads any more."""
        if self._ring and now_ns > self.watched_until_ns:
            self._begin()

    def read(self, watch: int, position: int, most: int, open_sessions: Container[bytes], now_ns: int) -> Records:
        """Returns at most so many of the newest records from a position on, and keeps records for a while longer.

        A ring begins anew, without records, for a reader of another ring, or if most of its bits belong to sessions
        that are no longer among the open ones. So a reader that missed an answer begins with watch 0.
        """
        if watch != self._watch or now_ns > self.watched_until_ns or self._is_full(open_sessions):
            self._begin()
            self._ring = bytearray(MOST_RECORDS * RECORD.size)
            position = 0
        self.watched_until_ns = now_ns + WATCHED_NS
        first = max(position, self._position - min(most, MOST_RECORDS))
        programs = tuple([_name(entry, self._programs[entry.digest]) for entry in self._unread])
        sessions = tuple(self._unnamed)
        self._unread.clear()
        self._unnamed.clear()
        return Records(self._device, self._watch, self._position, self._between(first), programs, sessions)

    def _begin(self) -> None:
        """Begins a ring without records and without memory."""
        self._watch += 1
        self._position = 0
        self._ring = bytearray()
        self._programs: dict[bytes, int] = {}
        self._unread: dict[ProgramEntry, None] = {}
        self._sessions: dict[bytes, SessionName] = {}
        self._masks: dict[bytes, int] = {}
        self._unnamed: list[SessionName] = []

    def _is_full(self, open_sessions: Container[bytes]) -> bool:
        if len(self._sessions) < OTHER_SESSIONS:
            return False
        return 2 * sum(each not in open_sessions for each in self._sessions) >= OTHER_SESSIONS

    def _mask(self, session: Session) -> int:
        """Returns the mask of a session that has no bit yet: a bit of its own, or that of all others."""
        bit = len(self._sessions)
        if bit == OTHER_SESSIONS:
            return 1 << OTHER_SESSIONS
        name = SessionName(bit, session.shown_id, session.name, session.tenant)
        self._sessions[session.session_id] = name
        self._unnamed.append(name)
        self._masks[session.session_id] = 1 << bit
        return 1 << bit

    def _number(self, entry: ProgramEntry) -> int:
        number = self._programs.get(entry.digest)
        if number is None:
            if len(self._programs) >= MOST_PROGRAMS:
                return OTHER_PROGRAMS
            number = self._programs[entry.digest] = len(self._programs) + 1
        self._unread[entry] = None
        return number

    def _between(self, first: int) -> bytes:
        """Returns the records from a position on."""
        if first == self._position:
            return b""
        begin, end = (each % MOST_RECORDS * RECORD.size for each in (first, self._position))
        if begin < end:
            return bytes(self._ring[begin:end])
        return bytes(self._ring[begin:]) + bytes(self._ring[:end])


def _name(entry: ProgramEntry, number: int) -> ProgramName:
    return ProgramName(number, entry.digest.hex(), *entry.cost.split())
