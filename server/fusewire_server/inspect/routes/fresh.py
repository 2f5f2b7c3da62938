"""Gives routes a snapshot that is taken after their request has come."""

from __future__ import annotations

from typing import Annotated, Protocol

from fastapi import Depends, Request

from fusewire_server.inspect.snapshots.answer_age import answers_from
from fusewire_server.inspect.snapshots.snapshot import Snapshot


class Snapshots(Protocol):
    """Gives snapshots to the inspection thread."""

    def newest(self) -> Snapshot:
        """Returns the last published snapshot, however old it is."""

    async def fresh(self) -> Snapshot:
        """Returns a snapshot that is taken now. Raises EngineBusy if the engine thread is too busy to take one."""


async def fresh_snapshot(request: Request) -> Snapshot:
    """Returns a fresh snapshot. The answer tells its age."""
    snapshots: Snapshots = request.app.state.snapshots
    snapshot = await snapshots.fresh()
    answers_from(request.scope, snapshot)
    return snapshot


Fresh = Annotated[Snapshot, Depends(fresh_snapshot)]
