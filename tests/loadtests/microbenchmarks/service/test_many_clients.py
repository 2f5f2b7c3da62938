"""What the figures of many clients count, without clients."""

from __future__ import annotations

from loadtests.measuring.figure import Verdict
from loadtests.microbenchmarks.limits import held_to_limit
from loadtests.microbenchmarks.service.many_clients import _launches_since, _Released, _rows_figure
from loadtests.system.service import Program


def _program(digest: str, *, is_fragment: bool, rows: int, submissions: int) -> Program:
    return Program(digest, 60, is_fragment, 1, "loaded", rows, 0, 0, rows, submissions)


def _figure_of_one_turn(*programs: Program) -> _Released:
    before = {program.digest: program._replace(rows=8, submissions=1) for program in programs}
    return _Released(_launches_since(before, {program.digest: program for program in programs}))


def test_only_launches_meanwhile_count() -> None:
    released = _figure_of_one_turn(
        _program("loop", is_fragment=False, rows=24, submissions=3),
        _program("old", is_fragment=False, rows=8, submissions=1),
    )
    assert [(each.rows, each.submissions) for each in released.launches] == [(16, 2)]


def test_rows_of_fragments_are_told_in_a_note_and_change_no_verdict() -> None:
    figure = _rows_figure(
        [
            _figure_of_one_turn(
                _program("loop", is_fragment=False, rows=24, submissions=3),
                _program("fragment", is_fragment=True, rows=16, submissions=9),
            )
        ]
    )
    assert (figure.value, held_to_limit(figure, "cpu").verdict) == (8, Verdict.OK)
    assert figure.notes[0] == "of 1 turns: 8.00; fragments counted too: 2.40"
