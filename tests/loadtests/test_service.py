"""What is read from a server's inspection, without a server."""

from __future__ import annotations

from loadtests.service import Program, _planned_share


def _program(ops: int, tier: int, hits: int) -> Program:
    return Program("d", ops, False, tier, "loaded", hits, 0, 0, hits, hits)


def test_only_what_was_sent_meanwhile_counts_as_planned_or_not() -> None:
    before = {"old": _program(ops=100, tier=0, hits=7), "loop": _program(ops=60, tier=0, hits=1)}
    after = {"old": _program(ops=100, tier=0, hits=7), "loop": _program(ops=60, tier=1, hits=2)}
    assert _planned_share(before, after) == 1.0


def test_programs_count_by_their_ops() -> None:
    after = {"loop": _program(ops=90, tier=1, hits=1), "fragment": _program(ops=5, tier=0, hits=2)}
    assert _planned_share({}, after) == 0.9


def test_nothing_sent_is_nothing_planned() -> None:
    assert _planned_share({}, {}) == 0.0
