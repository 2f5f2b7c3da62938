"""The engine processes of a server, one a device.

An engine that ends, or that cannot start, hinders none of the others: its sessions are lost, and it is started again.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from fusewire_protos.errors import ServerFault
from fusewire_server.config.config import Config
from fusewire_server.config.settings import devices_text
from fusewire_server.engines.commands import (
    REPORTS,
    Answered,
    Ask,
    Begin,
    Command,
    Drain,
    Drained,
    Listening,
    Loaded,
    Reload,
    Report,
    Unanswered,
)
from fusewire_server.engines.joined_snapshots import DeviceSnapshot, left_of
from fusewire_server.engines.snapshot_changes import SnapshotChanges, SnapshotReceiver
from fusewire_server.front_ends.placement import EngineAt
from fusewire_server.inspect.engine_thread import EngineBusy
from fusewire_server.inspect.snapshots.snapshot import Snapshot
from fusewire_server.processes import children, messages
from fusewire_server.processes.children import Child, Kind, log

_COMMAND = (sys.executable, "-m", "fusewire_server.engines")  # and the device, for people who look at processes
_ENDED = "its engine has ended, and is started again"


class EngineGone(Exception):
    """Raised if an engine ends before it answers."""


class EngineProcess:
    """The engine process of one device, which is kept running."""

    def __init__(
        self,
        device: int,
        greeting: Callable[[], bytes],
        environment: Mapping[str, str],
        on_change: Callable[[], None],
    ) -> None:
        """`on_change` is called when it begins to take calls, and when it takes no more."""
        self.device = device
        self.at: EngineAt | None = None  # while it takes calls
        self.trouble = ""  # why it takes none
        self.left: Snapshot | None = None  # of those that have ended
        self.is_drained = asyncio.Event()
        self._on_change = on_change
        self._receiver = SnapshotReceiver()
        self._last: Snapshot | None = None
        self._questions: dict[int, asyncio.Future[Any]] = {}
        self._asked = 0
        kind = Kind(f"the engine of device {device}", (*_COMMAND, str(device)), REPORTS)
        self.child = Child(kind, greeting, self._hear, on_end=self._end, environment={**os.environ, **environment})

    def tell(self, command: Command) -> None:
        self.child.tell(messages.encode(command))

    async def ask(self, name: str, **arguments: Any) -> Any:
        """Returns the engine's answer. Raises EngineBusy if it has none now, and EngineGone if it ends."""
        self._asked += 1
        number, answer = self._asked, asyncio.get_running_loop().create_future()
        self._questions[number] = answer
        self.tell(Ask(number, name, arguments))
        try:
            return await answer
        finally:
            self._questions.pop(number, None)

    async def snapshot(self) -> DeviceSnapshot:
        """Returns a fresh snapshot, or why there is none. Raises EngineBusy."""
        try:
            snapshot: Snapshot | None = await self.ask("snapshot") if self.at is not None else None
        except EngineGone:
            snapshot = None
        return DeviceSnapshot(self.device, snapshot, "" if snapshot is not None else self.trouble)

    def _hear(self, report: Report) -> None:
        match report:
            case Listening():
                self.at = EngineAt(self.device, report.name, report.secret)
                self.trouble = ""
                self._on_change()
            case Loaded() if self.at is not None:
                self.at = self.at._replace(load=report.load)
            case Answered():
                self._answer(report.number, pickle.loads(report.pickled))  # noqa: S301 - from our own child's pipe
            case Unanswered():
                self._settle(report.number, EngineBusy(report.text))
            case Drained():
                self.is_drained.set()

    def _answer(self, number: int, answer: Any) -> None:
        """Takes an answer. A snapshot is received even if nobody waits for it now: the next one goes on from it."""
        if isinstance(answer, SnapshotChanges):
            self._last = answer = self._receiver.received(answer)
        future = self._questions.get(number)
        if future is not None and not future.done():
            future.set_result(answer)

    def _settle(self, number: int, error: Exception) -> None:
        future = self._questions.get(number)
        if future is not None and not future.done():
            future.set_exception(error)

    def _end(self) -> None:
        self.at = None
        self.trouble = _ENDED
        self.is_drained.set()
        if self._last is not None:
            self.left = left_of(self._last, self.left)
        self._receiver, self._last = SnapshotReceiver(), None
        for number in [*self._questions]:
            self._settle(number, EngineGone())
        self._on_change()


class Engines:
    """All engine processes of a server."""

    def __init__(
        self,
        config: Config,
        devices: Mapping[int, Mapping[str, str]],
        on_change: Callable[[], None],
        on_broken: Callable[[BaseException], None],
    ) -> None:
        """`devices` maps each number to variables of the environment of its engine.

        `on_change` is called when an engine begins or ends to take calls, and `on_broken` when none is left.
        """
        self._numbers = devices_text(devices)
        self._backend = "cuda" if any(devices.values()) else "cpu"  # in the place of auto
        self._config = self._settled(config)
        self._drain_s: float | None = None  # once they are to drain
        self._on_change = on_change
        self._on_broken = on_broken
        self.all = [
            EngineProcess(device, partial(self._greeting, device), environment, self._changed)
            for device, environment in devices.items()
        ]

    @property
    def at(self) -> tuple[EngineAt, ...]:
        """The engines that take calls."""
        return tuple([each.at for each in self.all if each.at is not None])

    async def start(self) -> None:
        """Starts them. Raises what keeps the first one from starting, if none of them does."""
        begun = await asyncio.gather(*[each.child.start() for each in self.all], return_exceptions=True)
        failures = [failure for failure in begun if failure is not None]
        if len(failures) == len(begun):
            raise failures[0]
        for engine, failure in zip(self.all, begun, strict=True):
            if failure is not None:
                engine.trouble = str(failure)
                log.error("device %d takes no sessions, and is tried again: %s", engine.device, failure)
            engine.child.keep()

    async def ask(self, name: str, **arguments: Any) -> list[Any]:
        """Returns the answers of those that run. Raises EngineBusy."""
        running = [each for each in self.all if each.at is not None]
        answers = await asyncio.gather(*[each.ask(name, **arguments) for each in running], return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException) and not isinstance(answer, EngineGone):
                raise answer
        found = [answer for answer in answers if not isinstance(answer, EngineGone)]
        if not found:
            raise EngineBusy("no engine answers")
        return found

    def reload(self, config: Config) -> None:
        """Has them take over settings, and read tokens again."""
        self._config = self._settled(config)
        self._tell_all(Reload(self._config))

    async def drain(self, drain_s: float) -> None:
        """Has them open no more sessions, and waits until no session is left."""
        self._drain_s = drain_s
        self._tell_all(Drain(drain_s))
        await asyncio.gather(*[each.is_drained.wait() for each in self.all if each.at is not None])

    def hurry(self) -> None:
        """Has them end all sessions now."""
        self._tell_all(Drain(0.0))

    async def stop(self, within_s: float) -> None:
        """Ends them: after they have told their clients, or after this time."""
        await children.stop([each.child for each in self.all], within_s)

    def _settled(self, config: Config) -> Config:
        """Returns settings that say which devices and which backend, where they say all and auto."""
        backend = self._backend if config.device.backend == "auto" else config.device.backend
        return replace(config, device=replace(config.device, devices=self._numbers, backend=backend))

    def _greeting(self, device: int) -> bytes:
        begin = messages.encode(Begin(self._config, device))
        return begin if self._drain_s is None else begin + messages.encode(Drain(self._drain_s))

    def _changed(self) -> None:
        self._on_change()
        if not any(each.at is not None for each in self.all) and any(each.trouble == _ENDED for each in self.all):
            self._on_broken(ServerFault("no engine is left"))

    def _tell_all(self, command: Command) -> None:
        for each in self.all:
            each.tell(command)
