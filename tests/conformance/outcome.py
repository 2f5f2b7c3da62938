"""Reads what became of a suite's tests from the report that pytest writes, and prints it as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree as ET

_REASON_CHARACTERS = 150


@dataclass
class Outcome:
    """What became of one suite. `trouble` says why it did not run to its end, if it did not."""

    suite: str
    passed: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    trouble: str = ""

    @property
    def is_good(self) -> bool:
        return not self.failed and not self.trouble and self.passed > 0


def read(suite: str, report: Path) -> Outcome:
    """Returns the outcome that a report in JUnit's format tells. Without a report the outcome says so."""
    outcome = Outcome(suite)
    if not report.exists():
        outcome.trouble = "pytest ended without a report; see its messages"
        return outcome
    for case in ET.parse(report).iter("testcase"):  # noqa: S314  # pytest wrote it just now
        _count(outcome, case)
    return outcome


def _count(outcome: Outcome, case: ET.Element) -> None:
    skipped = case.find("skipped")
    if skipped is not None:
        outcome.skipped[" ".join(skipped.get("message", "").split())[:_REASON_CHARACTERS]] += 1
    elif case.find("failure") is not None or case.find("error") is not None:
        outcome.failed.append(f"{case.get('classname', '')}::{case.get('name', '')}")
    else:
        outcome.passed += 1


def lines(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yields the table, and under each suite what failed and why tests were skipped."""
    yield f"{'suite':<28}{'passed':>8}{'failed':>8}{'skipped':>9}"
    for outcome in outcomes:
        yield f"{outcome.suite:<28}{outcome.passed:>8}{len(outcome.failed):>8}{outcome.skipped.total():>9}"
        if outcome.trouble:
            yield f"    not run: {outcome.trouble}"
        yield from (f"    failed: {test}" for test in outcome.failed)
        yield from (f"    skipped {count}: {reason}" for reason, count in outcome.skipped.most_common())
