"""Snapshots that are told arrive as they were, and what was told is not told again."""

from __future__ import annotations

import pickle
from dataclasses import replace

from fusewire_server.engines.told_snapshots import Heard, Telling
from fusewire_server.inspect.snapshots.program_view import ProgramDetail
from fusewire_server.inspect.snapshots.snapshot import Snapshot
from tests.server.inspect.examples import SNAPSHOT


def through(telling: Telling, heard: Heard, snapshot: Snapshot) -> Snapshot:
    """What arrives of a snapshot in another process."""
    return heard.heard(pickle.loads(pickle.dumps(telling.told(snapshot))))  # noqa: S301 - our own bytes


def used(detail: ProgramDetail) -> ProgramDetail:
    return replace(detail, program=replace(detail.program, hits=detail.program.hits + 1))


def test_snapshots_arrive_as_they_were() -> None:
    telling, heard = Telling(), Heard()
    first, second = SNAPSHOT.programs
    new = replace(first, program=replace(first.program, digest="cc"))
    for programs in ((), (first,), (first, second), (used(first), second), (second,), (second, new), ()):
        snapshot = replace(SNAPSHOT, programs=programs)
        assert through(telling, heard, snapshot) == snapshot


def test_what_was_told_is_not_told_again() -> None:
    telling = Telling()
    assert len(telling.told(SNAPSHOT).changed) == 2
    assert telling.told(SNAPSHOT).changed == ()
    (planned,) = [each for each in SNAPSHOT.programs if each.compiled is not None]
    (changed,) = telling.told(replace(SNAPSHOT, programs=(used(planned),))).changed
    assert changed.compiled is None
    assert changed.program.hits == planned.program.hits + 1


def test_a_plan_that_comes_later_is_told() -> None:
    telling, heard = Telling(), Heard()
    (planned,) = [each for each in SNAPSHOT.programs if each.compiled is not None]
    for detail in (replace(planned, compiled=None), planned, used(planned)):
        snapshot = replace(SNAPSHOT, programs=(detail,))
        assert through(telling, heard, snapshot) == snapshot
