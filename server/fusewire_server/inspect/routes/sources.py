"""Names what the routes answer from: the sources of an application, and the snapshot taken for a request."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Annotated, Protocol

from fastapi import Depends, Request, Response
from pydantic import BaseModel

from fusewire_server.inspect.problems import Refused
from fusewire_server.inspect.routes.guard import Guard
from fusewire_server.inspect.snapshot import Snapshot
from fusewire_server.inspect.snapshot_reader import StaleSnapshot

_AGE_HEADER = "snapshot-age-ms"


class Snapshots(Protocol):
    """Gives snapshots to the inspection thread."""

    def newest(self) -> Snapshot:
        """Returns the last published snapshot, however old it is."""

    async def fresh(self) -> Snapshot:
        """Returns a snapshot that is taken now. Raises StaleSnapshot if the loop thread is too busy to take one."""


class Control(Protocol):
    """Operations on the server. They return at once, and may be called on any thread."""

    def hold(self) -> None:
        """Stops new submissions. Submissions that have begun go on, and sessions stay open."""

    def release(self) -> None:
        """Lets the device take submissions again."""

    def drain(self) -> None:
        """Lets sessions finish their work, and ends the server. The second call ends it at once."""


class SettingView(BaseModel):
    """The value of a setting, and where it was set: default, file, environment or flag."""

    value: str | int | float | bool | None
    origin: str


@dataclass(frozen=True)
class Sources:
    """All that the routes of one application read and operate."""

    snapshots: Snapshots
    control: Control
    settings: Mapping[str, SettingView] = field(default_factory=dict)


def _sources(request: Request) -> Sources:
    sources: Sources = request.app.state.sources
    return sources


def _guard(request: Request) -> Guard:
    guard: Guard = request.app.state.guard
    return guard


Served = Annotated[Sources, Depends(_sources)]
Guarded = Annotated[Guard, Depends(_guard)]


async def fresh_snapshot(sources: Sources) -> Snapshot:
    """Returns a snapshot that is taken now. Refuses the request if the loop thread is too busy to take one."""
    try:
        return await sources.snapshots.fresh()
    except StaleSnapshot as reason:
        raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "busy", str(reason)) from None


def age_header(snapshot: Snapshot) -> dict[str, str]:
    """Returns the header that tells how long ago a snapshot was taken."""
    return {_AGE_HEADER: f"{(time.monotonic_ns() - snapshot.taken_at_ns) / 1e6:.1f}"}


async def _fresh(sources: Served, response: Response) -> Snapshot:
    snapshot = await fresh_snapshot(sources)
    response.headers.update(age_header(snapshot))
    return snapshot


Fresh = Annotated[Snapshot, Depends(_fresh)]
