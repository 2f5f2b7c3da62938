"""Looks at the server for all who watch it live: one snapshot and one reading of records a tick, none without watchers.

Runs on the inspection thread. There are few places, because each watcher takes work at each tick.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from typing import NamedTuple

from fusewire_server.inspect.control import Control
from fusewire_server.inspect.engine_thread import EngineBusy
from fusewire_server.inspect.launches.history import History
from fusewire_server.inspect.launches.steps import Steps, steps_of
from fusewire_server.inspect.requests.problems import Refused
from fusewire_server.inspect.routes.fresh import Snapshots
from fusewire_server.inspect.snapshots.snapshot import Snapshot

TICK_S = 0.5
MOST_WATCHERS = 16
_MOST_READ = 1 << 15  # records of a device at a tick
_NEWEST = 20  # readings of which steps are measured: those of the last ten seconds
_MOST_STEPS = 256  # sessions whose steps are measured


class Look(NamedTuple):
    """What was seen at a tick. `number` counts the ticks. `steps` are those of sessions by shown id."""

    number: int
    snapshot: Snapshot
    steps: Mapping[str, Steps]


class Watching:
    """The look that all watchers share, and their places."""

    def __init__(self, snapshots: Snapshots, control: Control) -> None:
        self.history = History()
        self._snapshots = snapshots
        self._control = control
        self._watchers = 0
        self._ticks: asyncio.Task[None] | None = None
        self._look: Look | None = None
        self._seen = asyncio.Event()

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Takes a place while the body runs. Refuses if all are taken."""
        if self._watchers >= MOST_WATCHERS:
            message = f"{MOST_WATCHERS} watch this server already; try again when one has left"
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "no_place", message)
        self._watchers += 1
        if self._ticks is None:
            self._ticks = asyncio.create_task(self._keep_looking())
        try:
            yield
        finally:
            self._watchers -= 1
            if not self._watchers and self._ticks is not None:
                self._ticks.cancel()
                self._ticks = None

    async def next_look(self, after: int) -> Look:
        """Returns the newest look of a later tick than this."""
        while self._look is None or self._look.number <= after:
            await self._seen.wait()
        return self._look

    async def read_records(self) -> None:
        """Reads the newest records, unless the ticks do it."""
        if self._ticks is None:
            await self._read()

    def programs_of(self, tenant: str) -> set[str]:
        """Returns the digests of the programs that the tenant's sessions have run, among the known launches."""
        return set().union(*[device.programs_of(tenant) for device in self.history.devices.values()])

    async def _keep_looking(self) -> None:
        number = 0 if self._look is None else self._look.number
        while True:
            with suppress(EngineBusy):
                await self._read()
                number += 1
                self._look = Look(number, await self._snapshots.fresh(), self._steps())
                self._seen.set()
                self._seen = asyncio.Event()
            await asyncio.sleep(TICK_S)

    async def _read(self) -> None:
        try:
            self.history.add(await self._control.launch_records(self.history.positions(), _MOST_READ))
        except EngineBusy:
            self.history.forget()  # the answer may come later, to nobody, with names that are told once
            raise

    def _steps(self) -> dict[str, Steps]:
        found: dict[str, Steps] = {}
        for device in self.history.devices.values():
            names = device.sessions
            for bit, steps in steps_of(device.rows(_NEWEST), [*names][-_MOST_STEPS:]).items():
                found[names[bit].session] = steps
        return found
