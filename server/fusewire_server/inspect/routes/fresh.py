"""Gives routes a snapshot that is taken after their request has come."""

from __future__ import annotations

import time
from typing import Annotated, Protocol

from fastapi import Depends, Request, Response

from fusewire_server.inspect.snapshot import Snapshot

_AGE_HEADER = "snapshot-age-ms"


class Snapshots(Protocol):
    """Gives snapshots to the inspection thread."""

    def newest(self) -> Snapshot:
        """Returns the last published snapshot, however old it is."""

    async def fresh(self) -> Snapshot:
        """Returns a snapshot that is taken now. Raises LoopBusy if the loop thread is too busy to take one."""


async def fresh_snapshot(request: Request, response: Response) -> Snapshot:
    """Returns a fresh snapshot, and puts its age into the answer."""
    snapshots: Snapshots = request.app.state.snapshots
    snapshot = await snapshots.fresh()
    age_ns = time.monotonic_ns() - snapshot.taken_at_ns
    response.headers[_AGE_HEADER] = f"{age_ns / 1e6:.1f}"
    return snapshot


Fresh = Annotated[Snapshot, Depends(fresh_snapshot)]
