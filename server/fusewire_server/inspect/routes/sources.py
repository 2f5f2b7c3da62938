"""Names what the routes answer from: the sources of an application, and the snapshot taken for a request."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Protocol

from fastapi import Depends, Request, Response

from fusewire_server.inspect.described import DescribedModel
from fusewire_server.inspect.live_views import ArrayPage, PoolView, QueueView, SlowLog
from fusewire_server.inspect.routes.guard import Guard
from fusewire_server.inspect.snapshot import Snapshot

_AGE_HEADER = "snapshot-age-ms"


class Snapshots(Protocol):
    """Gives snapshots to the inspection thread."""

    def newest(self) -> Snapshot:
        """Returns the last published snapshot, however old it is."""

    async def fresh(self) -> Snapshot:
        """Returns a snapshot that is taken now. Raises LoopBusy if the loop thread is too busy to take one."""


class Questions(Protocol):
    """Answers from tables that no snapshot holds. Raises LoopBusy if the loop thread is too busy to answer."""

    async def arrays(self, session: str, after: int, limit: int) -> ArrayPage | None:
        """Returns the arrays with the next handles above `after`, or None if there is no such session."""

    def pool(self) -> PoolView:
        """Returns the sums and blocks of the device's memory."""

    async def queue(self) -> QueueView:
        """Returns the rows that wait for the device."""

    async def slow_log(self, limit: int) -> SlowLog:
        """Returns the newest slow submissions."""


class Control(Protocol):
    """Operations on the server. They return at once, and may be called on any thread."""

    def hold(self) -> None:
        """Stops new submissions. Submissions that have begun go on, and sessions stay open."""

    def release(self) -> None:
        """Lets the device take submissions again."""

    def drain(self) -> None:
        """Lets sessions finish their work, and ends the server. The second call ends it at once."""

    def end_session(self, session: str) -> None:
        """Ends the session with this shown id, and tells its client that an operator did so."""

    def log_level(self) -> str:
        """Returns the least level of records that the log takes: debug, info, warning or error."""

    def set_log_level(self, level: str) -> None:
        """Changes that level until the next start."""


class SettingView(DescribedModel):
    """The value of a setting, and where it was set."""

    value: str | int | float | bool | None
    """The value, in the unit that ends the setting's name. Null if it is not set."""
    origin: str
    """Where the value was set: default, file, environment or flag."""


@dataclass(frozen=True)
class Sources:
    """All that the routes of one application read and operate."""

    snapshots: Snapshots
    questions: Questions
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


def age_header(snapshot: Snapshot) -> dict[str, str]:
    """Returns the header that tells how long ago a snapshot was taken."""
    return {_AGE_HEADER: f"{(time.monotonic_ns() - snapshot.taken_at_ns) / 1e6:.1f}"}


async def _fresh(sources: Served, response: Response) -> Snapshot:
    snapshot = await sources.snapshots.fresh()
    response.headers.update(age_header(snapshot))
    return snapshot


Fresh = Annotated[Snapshot, Depends(_fresh)]
