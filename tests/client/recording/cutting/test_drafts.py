"""What is known of pieces that have come before."""

from __future__ import annotations

import pytest

from fusewire._recording.cutting import drafts
from fusewire._recording.cutting.segments import Structure, structure_of
from fusewire._recording.tape import Integers
from tests.client.loops import H
from tests.client.peer import connect


@pytest.fixture
def structures(monkeypatch: pytest.MonkeyPatch) -> list[Structure]:
    """Those that were worked out."""
    seen: list[Structure] = []

    def work_out(flat: Integers, first: int, ops: int) -> Structure:
        seen.append(structure_of(flat, first, ops))
        return seen[-1]

    monkeypatch.setattr(drafts, "structure_of", work_out)
    return seen


def test_a_piece_that_comes_again_is_of_a_known_structure_whatever_has_come_between(
    structures: list[Structure],
) -> None:
    x = connect().session.array(H)
    for _ in range(3):
        (x + 1.0).numpy()
        (x * 2.0).numpy()
    assert len(structures) == 2


def test_no_more_structures_are_known_than_a_few(structures: list[Structure], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drafts, "_MOST_KNOWN", 2)
    x = connect().session.array(H)
    for record_one in (x.__add__, x.__mul__, x.__sub__, x.__add__, x.__add__):
        record_one(2.0).numpy()
    assert len(structures) == 4
