"""Checks that every session read the very bytes that it reads when it runs alone on the server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from loadtests.load.session_runner import DIGEST_BYTES, RunnerReport
from loadtests.measuring.workers import Worker


class Verification(NamedTuple):
    """How many values were compared, and a sentence for each session (or replayed answer) with a difference."""

    values: int
    differences: tuple[str, ...]


def verify_alone(worker: Worker, reports: Sequence[RunnerReport], deadline_s: float) -> Verification:
    """Runs the steps of each session once more, one session at a time. Compares the values read in both runs."""
    differences = []
    for report in reports:
        worker.tell("run_alone", report.session, report.steps)
        difference = first_difference(report.digests, worker.answer(deadline_s))
        if difference is not None:
            differences.append(f"session {report.session}: read {difference} differs from that of the session alone")
    return Verification(sum(len(report.digests) // DIGEST_BYTES for report in reports), tuple(differences))


def first_difference(digests: bytes, alone: bytes) -> int | None:
    """Returns the number, from 1, of the first value whose digests differ, or None if all digests are equal.

    If only one side has a value, this value counts as different.
    """
    if digests == alone:
        return None
    for start in range(0, max(len(digests), len(alone)), DIGEST_BYTES):
        if digests[start : start + DIGEST_BYTES] != alone[start : start + DIGEST_BYTES]:
            return start // DIGEST_BYTES + 1
    return None
