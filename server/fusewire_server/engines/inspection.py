"""Inspection of several engines: asks them, and joins what they answer. The inspection thread calls it."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from fusewire_server.config.version import installed_version
from fusewire_server.engines.engines import Engines
from fusewire_server.engines.joined_snapshots import joined_snapshots
from fusewire_server.host.process_usage import process_usage
from fusewire_server.inspect.requests.refusals import INSPECTION_DOOR
from fusewire_server.inspect.snapshots.snapshot import Snapshot
from fusewire_server.inspect.snapshots.stats import BackendView, HostMemory, Stats
from fusewire_server.inspect.snapshots.totals import Totals
from fusewire_server.programs.counters import TOKEN_DOOR


class InFront:
    """What the process in front of the engines counts and uses itself. `inspection_refusals` are those by case."""

    def __init__(self, inspection_refusals: Mapping[str, int]) -> None:
        self._inspection_refusals = inspection_refusals
        self._refused_calls = 0
        self._instance = secrets.token_hex(16)
        self._started_at = datetime.now(UTC).isoformat(timespec="seconds")

    def count_refusals(self, calls: int) -> None:
        """Counts calls without a valid token."""
        self._refused_calls += calls

    def snapshot(self) -> Snapshot:
        """Returns the snapshot of a server without engines."""
        usage = process_usage()
        inspection = {case: count for case, count in self._inspection_refusals.items() if count}
        tokens = {"unauthenticated": self._refused_calls} if self._refused_calls else {}
        return Snapshot(
            Stats(
                instance=self._instance,
                version=installed_version(),
                started_at=self._started_at,
                backend=BackendView("", "", 0, "no engine runs", has_compiler=False),
                is_ready=False,
                totals=Totals(refusals={TOKEN_DOOR: tokens, INSPECTION_DOOR: inspection}),
                host_memory=HostMemory(unaccounted=usage.resident_bytes or 0),
                process=replace(usage, tasks=len(asyncio.all_tasks())),
            ),
            taken_at_ns=time.monotonic_ns(),
        )


class EnginesSnapshots:
    """Takes snapshots of all engines. Runs on the thread of the event loop, which has no engine here."""

    def __init__(self, engines: Engines, front: InFront) -> None:
        self._engines = engines
        self._front = front
        self.newest: Snapshot

    async def take(self) -> Snapshot:
        """Takes a snapshot. Raises EngineBusy."""
        engines = self._engines.all
        devices = await asyncio.gather(*[each.snapshot() for each in engines])
        left = [each.left for each in engines if each.left is not None]
        self.newest = joined_snapshots(self._front.snapshot(), devices, left)
        return self.newest
