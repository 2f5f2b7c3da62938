"""The table of programs."""

from __future__ import annotations

from fusewire_cli.listings import PROGRAMS

PROGRAM = {
    "digest": "aa" * 32,
    "state": "loaded",
    "tier": 1,
    "form": "persistent",
    "ops": 200,
    "hits": 3,
    "rows": 6,
    "submissions": 2,
    "row_ns": 2_500,
    "planning_ns": 10_000,
    "compiling_ns": 20_000,
    "refusal": "",
}


def test_the_form_of_a_program_is_a_column() -> None:
    heading, first, second = PROGRAMS.text_of([PROGRAM, {**PROGRAM, "form": "ops", "tier": 0}]).splitlines()
    assert heading.split()[:5] == ["program", "state", "form", "tier", "ops"]
    assert first.split()[:5] == ["aaaaaaaaaaaa", "loaded", "persistent", "1", "200"]
    assert second.split()[2:4] == ["ops", "0"]


def test_a_time_that_was_not_measured_is_not_told_as_0() -> None:
    unmeasured = {**PROGRAM, "row_ns": 0, "planning_ns": 0, "compiling_ns": 0}
    _, measured, unknown = PROGRAMS.text_of([PROGRAM, unmeasured]).splitlines()
    assert measured.endswith("2.5 µs     30.0 µs")
    assert unknown.split()[-2:] == ["-", "-"]
