"""Fails results of a segment: all of them at once for one reason, or one by one, a bounded number at a time. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from fusewire_protos.credit import Amount
from fusewire_protos.frames import Segment
from fusewire_server.programs.failure import Failure
from fusewire_server.programs.outline import Outline
from fusewire_server.sessions.entries.frame import Frame
from fusewire_server.sessions.entries.validation import dying_handles
from fusewire_server.sessions.host_bytes import FAILED_RANGE_BYTES, may_hold
from fusewire_server.sessions.rows import fail_value
from fusewire_server.sessions.session import Value
from fusewire_server.sessions.tables.failed_handles import FailedRange
from fusewire_server.sessions.values import free_handles

MOST_FAILED = 512  # the most results of a segment that are failed one by one in one call


def refuse_results(frame: Frame, segment: Segment, failure: Failure, outline: Outline, amount: Amount) -> None:
    """Fails all results of a segment because none can be computed. The segment's dying inputs die as usual."""
    dying = dying_handles(segment)
    frame.session.take_credit(amount)
    frame.session.complete(amount)
    keep_failed(frame, FailedRange(failure, segment.base, outline, segment.repetition))
    free_handles(frame.session, dying, frame.effects.released)


def keep_failed(frame: Frame, failed: FailedRange) -> None:
    """Keeps the failure of handles. A session keeps a bounded number; handles beyond that bound stay unknown."""
    session = frame.session
    if session.values_held + len(session.failed) >= 2 * frame.limits.handles:
        return
    if may_hold(session, len(session.failed) * FAILED_RANGE_BYTES, FAILED_RANGE_BYTES):
        session.failed.add(failed)


def fail_some(frame: Frame, failures: Iterator[tuple[Value, Failure]]) -> bool:
    """Fails the next results of a row that are to fail. Returns whether no such result is left."""
    count = 0
    for value, failure in islice(failures, MOST_FAILED):
        fail_value(frame.session, value, failure)
        count += 1
    return count < MOST_FAILED
