"""Snapshots that are told arrive as they were, and what was told is not told again."""

from __future__ import annotations

import pickle
from dataclasses import replace

from fusewire_server.engines.snapshot_changes import SnapshotReceiver, SnapshotSender
from fusewire_server.inspect.snapshots.program_view import ProgramDetail
from fusewire_server.inspect.snapshots.snapshot import Snapshot
from tests.server.inspect.examples import SNAPSHOT


def through(sender: SnapshotSender, receiver: SnapshotReceiver, snapshot: Snapshot) -> Snapshot:
    """What arrives of a snapshot in another process."""
    return receiver.received(pickle.loads(pickle.dumps(sender.changes(snapshot))))  # noqa: S301 - our own bytes


def used(detail: ProgramDetail) -> ProgramDetail:
    return replace(detail, program=replace(detail.program, hits=detail.program.hits + 1))


def test_snapshots_arrive_as_they_were() -> None:
    sender, receiver = SnapshotSender(), SnapshotReceiver()
    first, second = SNAPSHOT.programs
    new = replace(first, program=replace(first.program, digest="cc"))
    for programs in ((), (first,), (first, second), (used(first), second), (second,), (second, new), ()):
        snapshot = replace(SNAPSHOT, programs=programs)
        assert through(sender, receiver, snapshot) == snapshot


def test_what_was_told_is_not_told_again() -> None:
    sender = SnapshotSender()
    assert len(sender.changes(SNAPSHOT).changed) == 2
    assert sender.changes(SNAPSHOT).changed == ()
    (planned,) = [each for each in SNAPSHOT.programs if each.compiled is not None]
    (changed,) = sender.changes(replace(SNAPSHOT, programs=(used(planned),))).changed
    assert changed.compiled is None
    assert changed.program.hits == planned.program.hits + 1


def test_a_plan_that_comes_later_is_told() -> None:
    sender, receiver = SnapshotSender(), SnapshotReceiver()
    (planned,) = [each for each in SNAPSHOT.programs if each.compiled is not None]
    for detail in (replace(planned, compiled=None), planned, used(planned)):
        snapshot = replace(SNAPSHOT, programs=(detail,))
        assert through(sender, receiver, snapshot) == snapshot


def test_a_sender_that_begins_anew_says_which_programs_there_are() -> None:
    receiver, (first, second) = SnapshotReceiver(), SNAPSHOT.programs
    through(SnapshotSender(), receiver, replace(SNAPSHOT, programs=(first, second)))
    left = replace(SNAPSHOT, programs=(second,))
    assert through(SnapshotSender(), receiver, left) == left
