"""Gives results that will never exist their failures, a bounded number at a time. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from fusewire_protos import dtypes
from fusewire_protos.credit import Amount
from fusewire_protos.shapes import Spec
from fusewire_server.programs.failure import Failure
from fusewire_server.sessions.frame import FailedResults, Frame, PartlyFailed
from fusewire_server.sessions.rows import fail_value
from fusewire_server.sessions.session import ValueState
from fusewire_server.sessions.values import kill, mint

MOST_FAILED = 512  # results of a segment that are made failures in one piece

NO_BYTES = Spec(dtypes.uint8, (0,))  # of a value that will never exist


def refuse_results(
    frame: Frame, failures: Iterator[tuple[int, Failure]], dying: tuple[int, ...], amount: Amount
) -> FailedResults | None:
    """A segment of which nothing can be computed: its results exist as failures; its inputs still die."""
    frame.session.admit(amount)
    frame.session.complete(amount)
    return mint_failed(frame, FailedResults(failures, dying))


def mint_failed(frame: Frame, results: FailedResults) -> FailedResults | None:
    """Handles whose values will never exist, or the first of many; `results` again if others are left.

    Their number is bounded too: those beyond are simply unknown.
    """
    session = frame.session
    room = max(2 * frame.limits.handles - len(session.values), 0)
    minted = 0
    for handle, failure in islice(results.failures, min(room, MOST_FAILED)):
        mint(session, handle, NO_BYTES, ValueState.FAILED).failure = failure
        minted += 1
    if minted == MOST_FAILED:
        return results
    kill(session, results.dying, frame.effects.released)
    return None


def fail_some(frame: Frame, failing: PartlyFailed) -> bool:
    """Results of a row fail, all of them or the first of many. Whether that was all."""
    count = 0
    for value, failure in islice(failing.failures, MOST_FAILED):
        fail_value(frame.session, value, failure)
        count += 1
    return count < MOST_FAILED
