"""Checks what sessions read: against NumPy, and against what each session reads when it runs alone on the server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from loadtests.load.checks.differences import Array, difference_in_bits, difference_in_numbers
from loadtests.load.runners.reads import Read, digest_of
from loadtests.load.runners.runner import RunnerReport
from loadtests.measuring.workers import Worker
from loadtests.scenarios.library import Library
from loadtests.scenarios.scenario import Data, Scenario


class Verification(NamedTuple):
    """How many values were compared, and a sentence for each session (or replayed answer) with a difference."""

    values: int
    differences: tuple[str, ...]


def verify(alone: Worker, reports: Sequence[RunnerReport], deadline_s: float) -> Verification:
    """Runs the steps of each session once more, one session at a time, and compares every value that it read."""
    differences = []
    for report in reports:
        alone.tell("verify", report.session, report.reads)
        difference = alone.answer(deadline_s)
        if difference is not None:
            differences.append(f"session {report.session}, {difference}")
    values = sum(read is not None for report in reports for read in report.reads)
    return Verification(values, tuple(differences))


def first_difference(
    scenario: Scenario, reads: Sequence[Read], session: tuple[int, int], alone: Library, numpy: Library
) -> str | None:
    """Runs the steps of a session in two libraries, and returns how the first step with a difference differs.

    `reads` is what the session read in company, and `session` the seed of its data and its number. NumPy gets the same
    values sent into its program as the session that runs alone. So where a program chooses by what it has read, both
    choose the same, and each step is compared by itself.
    """
    programs = [scenario.program(xp, Data(*session)) for xp in (alone, numpy)]
    value: Array | None = None
    for step, read in enumerate(reads, start=1):
        results = [program.send(value) for program in programs]
        value, expected = (_read(xp, result) for xp, result in zip((alone, numpy), results, strict=True))
        found = _differences(read, value, expected, is_exact=scenario.is_exact)
        if found:
            return f"step {step}: {'; '.join(found)}"
    return None


def _read(xp: Library, result: Any) -> Array | None:
    return None if result is None else xp.read(result)


def _differences(read: Read, alone: Array | None, numpy: Array | None, *, is_exact: bool) -> list[str]:
    against_numpy = difference_in_bits if is_exact else difference_in_numbers
    if isinstance(read, bytes):
        is_same = alone is not None and digest_of(alone) == read
        in_company, from_numpy = None if is_same else "another value, which was too large to be kept", None
    else:
        in_company, from_numpy = difference_in_bits(read, alone), against_numpy(read, numpy)
    found = {
        "other bits than alone": in_company,
        "not what NumPy computes": from_numpy,
        "alone not what NumPy computes": against_numpy(alone, numpy),
    }
    return [f"{what}: {difference}" for what, difference in found.items() if difference is not None]
