"""What may be counted: every failure, and every reason for which a session ends."""

from __future__ import annotations

from fusewire_protos.errors import CASES, Consequence
from fusewire_server.programs.counters import END_REASONS, FAILURES


def test_no_defined_value_counts_as_a_failure() -> None:
    assert set(FAILURES) == {case.name for case in CASES if case.exception is not None}


def test_every_failure_that_ends_a_session_is_a_reason() -> None:
    assert {case.name for case in CASES if case.consequence is Consequence.PROTOCOL} < set(END_REASONS)
    assert len(END_REASONS) == len(set(END_REASONS))
