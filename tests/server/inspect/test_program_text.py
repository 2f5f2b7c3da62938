"""A program as text for people."""

from __future__ import annotations

from fusewire_server.inspect.program_text import program_text
from tests.server.inspect.examples import PLANNED, UNPLANNED


def test_a_planned_program_tells_its_launches_its_fusion_and_its_kernels() -> None:
    text = program_text(PLANNED)
    assert text.startswith("program aa: 200 ops, tier 1, loaded\n")
    assert "k_add × 2, sizes [64]" in text
    assert "ops 0 to 4 run as one kernel" in text
    assert text.endswith("---- k_add ----\nvoid k_add(void) {}\n")


def test_a_program_without_a_plan_tells_its_counts() -> None:
    text = program_text(UNPLANNED)
    assert "3 segments, 3 rows in 2 submissions" in text
    assert "launches" not in text
