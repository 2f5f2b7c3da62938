"""What a server process serves clients with: an engine of its own, or front ends of several engine processes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from fusewire_server.access.tokens import Authenticator
from fusewire_server.config.config import Config
from fusewire_server.engines.engines import Engines
from fusewire_server.engines.inspection import EnginesSnapshots, InFront
from fusewire_server.engines.one_engine import STOP_DEADLINE_S, OneEngine, drain, inspection_of_one
from fusewire_server.front_ends.front_ends import FrontEnds
from fusewire_server.host.garbage_collector import GarbageCollector
from fusewire_server.inspect.control import Control, inspection_on
from fusewire_server.inspect.snapshots.snapshot_reader import SnapshotReader
from fusewire_server.listeners import Listeners, front_ends_of

_TELL_EVERY_S = 0.1  # front ends, what engines have to do
_SNAPSHOT_WITHIN_S = 0.5
_NEVER_DRAINED_S = 2.0  # beyond limits.drain_s: then an engine does not answer


class Backend(NamedTuple):
    """The backend's name, and words about the device or devices."""

    name: str
    detail: str


class Serving(Protocol):
    """The part of a server process that clients reach. Everything runs on the thread of the process's event loop."""

    snapshots: SnapshotReader
    control: Control

    async def start(self) -> Backend:
        """Starts the devices. Raises ConfigurationError, ServerFault or OSError."""

    async def listen(self) -> int:
        """Lets clients connect, and returns the port. Raises ConfigurationError, ServerFault or OSError."""

    def reload(self, config: Config) -> None:
        """Takes over settings that may change, and reads certificates and tokens again."""

    async def drain(self, drain_s: float, hurry: asyncio.Event) -> None:
        """Opens no more sessions, and waits until all have ended, at most `drain_s`, or until `hurry` is set."""

    async def stop_listening(self, grace_s: float) -> None:
        """Listens no more, and ends the calls that go on after this time."""

    async def stop(self) -> None:
        """Ends the rest."""


class Alone:
    """Serves one device in this process."""

    def __init__(
        self,
        config: Config,
        authenticator: Authenticator | None,
        garbage: GarbageCollector,
        refusals: Mapping[str, int],
        on_broken: Callable[[BaseException], None],
        end: Callable[[], None],
    ) -> None:
        self._one = one = OneEngine(config, garbage, on_broken, inspection_refusals=refusals)
        self._listeners = Listeners(config, one.engine, authenticator)
        self.snapshots, self.control = inspection_of_one(one, end)

    async def start(self) -> Backend:
        info = self._one.engine.device.info
        return Backend(info.backend, info.detail)

    async def listen(self) -> int:
        return await self._listeners.start()

    def reload(self, config: Config) -> None:
        self._one.engine.reconfigure(config)
        self._listeners.reload(config)

    async def drain(self, drain_s: float, hurry: asyncio.Event) -> None:
        await drain(self._one.engine, self._one.publisher, self._listeners.tell_draining, drain_s, hurry)

    async def stop_listening(self, grace_s: float) -> None:
        await self._listeners.stop(grace_s)

    async def stop(self) -> None:
        await self._one.stop()


class InFrontOfEngines:
    """Serves several devices, each in an engine process."""

    def __init__(
        self,
        config: Config,
        devices: Mapping[int, Mapping[str, str]],
        refusals: Mapping[str, int],
        on_broken: Callable[[BaseException], None],
        end: Callable[[], None],
    ) -> None:
        """`devices` maps the number of each device to variables of the environment in which its engine runs."""
        self._config = config
        self._engines = Engines(config, devices, self._tell_front_ends, on_broken)
        self._front = InFront(refusals)
        self._front_ends: FrontEnds | None = None
        self._telling: asyncio.Task[None] | None = None
        self._snapshots = EnginesSnapshots(self._engines, self._front)
        self.snapshots, self.control = inspection_on(
            asyncio.get_running_loop(),
            self._engines.ask,
            self._snapshots.take,
            lambda: self._snapshots.newest,
            end,
            snapshot_within_s=_SNAPSHOT_WITHIN_S,
        )

    async def start(self) -> Backend:
        await self._engines.start()
        await self._snapshots.take()
        backend = self.snapshots.newest().stats.backend
        return Backend(backend.name, f"{backend.device}: {backend.detail}")

    async def listen(self) -> int:
        count = max(front_ends_of(self._config.listen.front_ends, len(os.sched_getaffinity(0))), 1)
        self._front_ends = FrontEnds(self._config, self._engines.at, self._front.count_refusals)
        port = await self._front_ends.start(count)
        self._telling = asyncio.create_task(self._keep_telling(), name="loads")
        return port

    def reload(self, config: Config) -> None:
        self._config = config
        self._engines.reload(config)
        if self._front_ends is not None:
            self._front_ends.reload(config)

    async def drain(self, drain_s: float, hurry: asyncio.Event) -> None:
        if self._front_ends is not None:
            self._front_ends.tell_draining()
        hurrying = asyncio.create_task(hurry.wait())
        draining = asyncio.create_task(self._engines.drain(drain_s))
        within_s = drain_s + _NEVER_DRAINED_S
        await asyncio.wait((hurrying, draining), timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        if hurry.is_set():
            self._engines.hurry()
            await asyncio.wait((draining,), timeout=_NEVER_DRAINED_S)
        hurrying.cancel()
        draining.cancel()

    async def stop_listening(self, grace_s: float) -> None:
        if self._telling is not None:
            self._telling.cancel()
        stops = [self._engines.stop(grace_s + STOP_DEADLINE_S)]
        if self._front_ends is not None:
            stops.append(self._front_ends.stop(grace_s))
        await asyncio.gather(*stops)

    async def stop(self) -> None:
        """Does nothing: the engines have ended with their calls."""

    def _tell_front_ends(self) -> None:
        """Tells them at once which engines there are. They keep those that they know if none is left."""
        if self._front_ends is not None and self._engines.at:
            self._front_ends.tell_engines(self._engines.at)

    async def _keep_telling(self) -> None:
        announced = self._engines.at
        while True:
            await asyncio.sleep(_TELL_EVERY_S)
            if self._engines.at != announced:
                announced = self._engines.at
                self._tell_front_ends()
