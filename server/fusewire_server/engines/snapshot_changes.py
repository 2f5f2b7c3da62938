"""Sends snapshots to another process: of the programs only what has changed since the last one. Pure.

A server may know a hundred thousand programs, with their plans, of which few change between two snapshots.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from fusewire_server.inspect.snapshots.program_view import ProgramDetail
from fusewire_server.inspect.snapshots.snapshot import Snapshot


class SnapshotChanges(NamedTuple):
    """A snapshot without programs, the programs that have changed since the last one, and digests of those gone.

    A changed program has its plan only if that was not sent before. `is_first`: the changes are from nothing.
    """

    snapshot: Snapshot
    changed: tuple[ProgramDetail, ...]
    gone: tuple[str, ...]
    is_first: bool


class SnapshotSender:
    """Makes the changes of the snapshots of one engine."""

    def __init__(self) -> None:
        self._programs: dict[str, ProgramDetail] = {}
        self._is_first = True

    def changes(self, snapshot: Snapshot) -> SnapshotChanges:
        is_first, self._is_first = self._is_first, False
        before, self._programs = self._programs, {each.program.digest: each for each in snapshot.programs}
        changed = [each for digest, each in self._programs.items() if before.get(digest) is not each]
        return SnapshotChanges(
            replace(snapshot, programs=()),
            tuple([_without_known_plan(each, before.get(each.program.digest)) for each in changed]),
            tuple([digest for digest in before if digest not in self._programs]),
            is_first,
        )


class SnapshotReceiver:
    """Makes the snapshots of one engine from their changes."""

    def __init__(self) -> None:
        self._programs: dict[str, ProgramDetail] = {}

    def received(self, changes: SnapshotChanges) -> Snapshot:
        """Returns the snapshot as it was sent."""
        if changes.is_first:  # the sender no longer knows what it has sent before
            self._programs.clear()
        for digest in changes.gone:
            del self._programs[digest]
        for each in changes.changed:
            before = self._programs.get(each.program.digest)
            known_plan = None if before is None else before.compiled
            self._programs[each.program.digest] = replace(each, compiled=each.compiled or known_plan)
        return replace(changes.snapshot, programs=tuple(self._programs.values()))


def _without_known_plan(detail: ProgramDetail, before: ProgramDetail | None) -> ProgramDetail:
    is_known = before is not None and before.compiled is detail.compiled
    return replace(detail, compiled=None) if is_known else detail
