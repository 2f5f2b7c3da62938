"""Tells a snapshot to another process without what was told before. Pure.

A server may know a hundred thousand programs, with their plans, of which few change between two snapshots.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from fusewire_server.inspect.snapshots.program_view import ProgramDetail
from fusewire_server.inspect.snapshots.snapshot import Snapshot


class Told(NamedTuple):
    """A snapshot without programs, the programs that have changed since the last one, and digests of those gone.

    A changed program has its plan only if that was not told.
    """

    snapshot: Snapshot
    changed: tuple[ProgramDetail, ...]
    gone: tuple[str, ...]


class Telling:
    """What was told of the snapshots of one engine."""

    def __init__(self) -> None:
        self._programs: dict[str, ProgramDetail] = {}

    def told(self, snapshot: Snapshot) -> Told:
        before, self._programs = self._programs, {each.program.digest: each for each in snapshot.programs}
        changed = [each for digest, each in self._programs.items() if before.get(digest) is not each]
        return Told(
            replace(snapshot, programs=()),
            tuple([_without_known_plan(each, before.get(each.program.digest)) for each in changed]),
            tuple([digest for digest in before if digest not in self._programs]),
        )


class Heard:
    """What was heard of the snapshots of one engine."""

    def __init__(self) -> None:
        self._programs: dict[str, ProgramDetail] = {}

    def heard(self, told: Told) -> Snapshot:
        """Returns the snapshot as it was before it was told."""
        for digest in told.gone:
            del self._programs[digest]
        for each in told.changed:
            before = self._programs.get(each.program.digest)
            known_plan = None if before is None else before.compiled
            self._programs[each.program.digest] = replace(each, compiled=each.compiled or known_plan)
        return replace(told.snapshot, programs=tuple(self._programs.values()))


def _without_known_plan(detail: ProgramDetail, before: ProgramDetail | None) -> ProgramDetail:
    is_known = before is not None and before.compiled is detail.compiled
    return replace(detail, compiled=None) if is_known else detail
