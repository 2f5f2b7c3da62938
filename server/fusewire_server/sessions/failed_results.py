"""Makes failed values for results that will never exist, a bounded number at a time. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from fusewire_protos.credit import Amount
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_server.programs.failure import Failure
from fusewire_server.sessions.frame import FailedResults, Frame, PartlyFailed
from fusewire_server.sessions.rows import fail_value
from fusewire_server.sessions.session import ValueState
from fusewire_server.sessions.values import free_handles, mint

MOST_FAILED = 512  # the most results of a segment that are failed in one call

NO_BYTES = Spec(dtypes.uint8, (0,))  # the spec of a value that will never exist


def refuse_results(
    frame: Frame, failures: Iterator[tuple[int, Failure]], dying: tuple[int, ...], amount: Amount
) -> FailedResults | None:
    """Fails all results of a segment because none can be computed. The segment's dying inputs die as usual."""
    frame.session.admit(amount)
    frame.session.complete(amount)
    return mint_failed(frame, FailedResults(failures, dying))


def mint_failed(frame: Frame, results: FailedResults) -> FailedResults | None:
    """Makes failed values for the first handles. Returns `results` if there may be handles left, else None.

    A session holds a bounded number of values; handles beyond that bound stay unknown.
    """
    session = frame.session
    room = max(2 * frame.limits.handles - len(session.values), 0)
    minted = 0
    for handle, failure in islice(results.failures, min(room, MOST_FAILED)):
        mint(session, handle, NO_BYTES, ValueState.FAILED, frame.arrival.now_ns).failure = failure
        minted += 1
    if minted == MOST_FAILED:
        return results
    free_handles(session, results.dying, frame.effects.released)
    return None


def fail_some(frame: Frame, failing: PartlyFailed) -> bool:
    """Fails the next results of a row that are to fail. Returns whether no such result is left."""
    count = 0
    for value, failure in islice(failing.failures, MOST_FAILED):
        fail_value(frame.session, value, failure)
        count += 1
    return count < MOST_FAILED
