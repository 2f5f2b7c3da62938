"""What a process with an engine has: the device, the planner, snapshots, and the tasks that keep house."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from fusewire_protos.errors import CaseError
from fusewire_server.backends import choose_device, kernel_finder, pack_of, planner_settings
from fusewire_server.config.config import Config
from fusewire_server.config.settings import numbers_in
from fusewire_server.config.version import installed_version
from fusewire_server.engine.engine import Engine
from fusewire_server.host.garbage_collector import GarbageCollector
from fusewire_server.host.malloc import keep_freed_memory
from fusewire_server.host.timer_slack import reduce_timer_slack
from fusewire_server.inspect.control import Control, inspection_on
from fusewire_server.inspect.live_views import ANSWERS
from fusewire_server.inspect.snapshots.publisher import Publisher
from fusewire_server.inspect.snapshots.snapshot import Snapshot
from fusewire_server.inspect.snapshots.snapshot_reader import SnapshotReader
from fusewire_server.planning.idle_packing import command_for, pack_when_idle
from fusewire_server.planning.planner import Planner
from fusewire_server.sessions.draining import may_end

KEEP_HOUSE_EVERY_S = 0.1
LOOK_EVERY_S = 0.05  # how often the server looks whether sessions have finished their work
STOP_DEADLINE_S = 0.5  # for what the device is doing
# A thread that needs the interpreter waits at most this long for one that computes in Python.
SWITCH_INTERVAL_S = 0.0001
_SNAPSHOT_WITHIN_S = 0.1
_NO_REFUSALS: Mapping[str, int] = {}


def prepare_process() -> None:
    """Makes this process one in which an engine runs well, before it starts threads."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    reduce_timer_slack()
    keep_freed_memory()


class OneEngine:
    """An engine, and all that it needs in its process but those who call it."""

    def __init__(
        self,
        config: Config,
        garbage: GarbageCollector,
        on_broken: Callable[[BaseException], None],
        *,
        inspection_refusals: Mapping[str, int] = _NO_REFUSALS,
        device_number: int | None = None,
    ) -> None:
        """Starts the engine. Raises ConfigurationError if the device cannot be had."""
        self._garbage = garbage
        device = choose_device(config.device)
        settings = planner_settings(device, config.planner)
        self._planner = Planner(settings) if settings is not None else None
        self.engine = Engine(config, device, self._planner, kernel_finder(device), device_number)
        self.engine.on_broken = on_broken
        self.engine.start()
        self.publisher = Publisher(self.engine, installed_version(), inspection_refusals)
        if self._planner is not None:
            self._planner.start()
        self._tasks = [asyncio.create_task(self._keep_house(), name="housekeeping")]
        if (device_number or 0) == numbers_in(config.device.devices)[0]:  # one process of a server does
            self._tasks.append(asyncio.create_task(self._pack_when_idle(), name="packing"))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        stops = [asyncio.to_thread(self.engine.stop, STOP_DEADLINE_S)]
        await asyncio.gather(*stops, *([] if self._planner is None else [self._planner.stop()]))

    async def _keep_house(self) -> None:
        engine = self.engine
        while True:
            engine.break_if_device_stalls(now_ns := time.monotonic_ns())
            engine.launch_records.forget_unwatched(now_ns)
            self._garbage.watch(open_sessions=len(engine.sessions), ended_sessions=engine.ended_sessions)
            await asyncio.sleep(KEEP_HOUSE_EVERY_S)

    async def _pack_when_idle(self) -> None:
        """Has the kernels of single ops compiled for a GPU. Those for a processor come with the package."""
        device, sessions = self.engine.device, self.engine.sessions
        if device.info.is_gpu and pack_of(device) is None:
            await pack_when_idle(command_for(device.info.architecture), lambda: not sessions)


def inspection_of_one(one: OneEngine, end: Callable[[], None]) -> tuple[SnapshotReader, Control]:
    """Returns what the inspection thread asks of the engine of this process. `end` ends the process in order."""
    publisher = one.publisher

    async def answer(name: str, **arguments: Any) -> list[Any]:
        return [ANSWERS[name](one.engine, **arguments)]

    async def take() -> Snapshot:
        return publisher.publish()

    loop = asyncio.get_running_loop()
    return inspection_on(loop, answer, take, lambda: publisher.snapshot, end, snapshot_within_s=_SNAPSHOT_WITHIN_S)


async def drain(
    engine: Engine,
    publisher: Publisher,
    tell_draining: Callable[[], Awaitable[None]],
    drain_s: float,
    hurry: asyncio.Event,
) -> None:
    """Opens no more sessions, lets each go on until its work is finished, and then ends it.

    Sessions that are still busy after `drain_s`, or when `hurry` is set, end all the same.
    """
    ends_at_ns = time.monotonic_ns() + round(drain_s * 1e9)
    reason = CaseError("draining", "the server is shutting down")
    engine.drain(ends_at_ns)
    publisher.publish()
    await tell_draining()
    while engine.sessions and not hurry.is_set() and (now_ns := time.monotonic_ns()) < ends_at_ns:
        engine.dismiss([session for session in engine.sessions.values() if may_end(session, now_ns)], reason)
        with suppress(TimeoutError):
            await asyncio.wait_for(hurry.wait(), LOOK_EVERY_S)
    engine.dismiss(engine.sessions.values(), reason)
