"""Puts a server process together, runs it until it is told to end, and takes it apart."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress

from fusewire_protos.address import Address
from fusewire_protos.errors import CaseError, ConfigurationError, FusewireError
from fusewire_server.access.certificates import certificate_of
from fusewire_server.access.tokens import Authenticator, check_protected_mode
from fusewire_server.backends import choose_device, kernel_finder, pack_of, planner_settings
from fusewire_server.config.config import Config, Loaded, plain_value_of
from fusewire_server.config.reload import reload
from fusewire_server.config.version import installed_version
from fusewire_server.engine.engine import Engine
from fusewire_server.host.descriptors import OpenFilesWatch, raise_open_file_limit
from fusewire_server.host.event_loop import loop_factory
from fusewire_server.host.garbage_collector import GarbageCollector
from fusewire_server.host.logs import configure_logs
from fusewire_server.host.malloc import keep_freed_memory
from fusewire_server.host.process_usage import process_usage
from fusewire_server.host.timer_slack import reduce_timer_slack
from fusewire_server.inspect.application import create_app
from fusewire_server.inspect.control import EngineControl
from fusewire_server.inspect.loop_thread import LoopThread
from fusewire_server.inspect.requests.refusals import CountedRefusals, RefusalCounts
from fusewire_server.inspect.server import InspectionServer, bind
from fusewire_server.inspect.snapshots.publisher import Publisher
from fusewire_server.inspect.snapshots.snapshot_reader import SnapshotReader
from fusewire_server.inspect.views import SettingView
from fusewire_server.listeners import Listeners
from fusewire_server.planning.idle_packing import command_for, pack_when_idle
from fusewire_server.planning.planner import Planner
from fusewire_server.sessions.draining import may_end

log = logging.getLogger("fusewire.app")

KEEP_HOUSE_EVERY_S = 0.1
COUNT_FILES_EVERY_S = 5.0
LOOK_EVERY_S = 0.05  # how often the server looks whether sessions have finished their work
STOP_DEADLINE_S = 0.5  # for what the device and inspection are doing
STOP_GRACE_S = 0.75  # for farewells and what is being written; it ends as soon as all calls have
# A thread that needs the interpreter waits at most this long for one that computes in Python.
SWITCH_INTERVAL_S = 0.0001


def run(loaded: Loaded, load_again: Callable[[], Loaded]) -> int:
    """Serves until SIGTERM or SIGINT; the exit status. Raises ConfigurationError or OSError if it cannot begin to.

    On SIGHUP it takes over the settings that `load_again` returns and that may change in service, and reads the token
    file and the certificates again.
    """
    config = loaded.config
    configure_logs(config.log.level, config.log.style, audits=config.log.audit)
    check_protected_mode(config.listen)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    reduce_timer_slack()
    keep_freed_memory()
    with GarbageCollector() as garbage, asyncio.Runner(loop_factory=loop_factory()) as runner:
        try:
            return runner.run(_Process(loaded, load_again, garbage).serve())
        except (FusewireError, OSError):
            raise
        except Exception as defect:
            log.critical("the process ends: %r", defect, exc_info=defect)
            return 1


class _Process:
    """One server process: everything in it, in the order in which it starts."""

    def __init__(self, loaded: Loaded, load_again: Callable[[], Loaded], garbage: GarbageCollector) -> None:
        config = loaded.config
        self._loaded = loaded
        self._load_again = load_again
        self._setting_views = _setting_views(loaded)
        self._garbage = garbage
        self._authenticator = Authenticator(config.listen.token_file) if config.listen.token_file else None
        self._http_certificate = certificate_of(config.listen)
        self._ended: asyncio.Future[int]
        self._hurry = asyncio.Event()
        self._inspection_refusals = RefusalCounts()

    @property
    def _config(self) -> Config:
        return self._loaded.config

    async def serve(self) -> int:
        loop = asyncio.get_running_loop()
        self._ended = loop.create_future()
        device = choose_device(self._config.device)
        settings = planner_settings(device, self._config.planner)
        planner = Planner(settings) if settings is not None else None
        engine = Engine(self._config, device, planner, kernel_finder(device))
        engine.on_broken = self._end_broken
        engine.start()
        publisher = Publisher(engine, installed_version(), self._inspection_refusals)
        if planner is not None:
            planner.start()
        inspection = self._start_inspection(engine, publisher)
        listeners = Listeners(self._config, engine, self._authenticator)
        port = await listeners.start()
        housekeeping = asyncio.create_task(self._keep_house(engine), name="housekeeping")
        counting = asyncio.create_task(self._watch_open_files(), name="open files")
        packing = asyncio.create_task(self._pack_when_idle(engine), name="packing")
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end, 0)
        loop.add_signal_handler(signal.SIGHUP, self._reload, engine, listeners)
        self._announce(device.info.backend, device.info.detail, port, inspection.port)
        status = await self._ended
        await drain(engine, publisher, listeners, self._config.limits.drain_s, self._hurry)
        # Side by side, because the process is to end within two seconds of the drain.
        await asyncio.gather(listeners.stop(STOP_GRACE_S), asyncio.to_thread(inspection.stop, STOP_DEADLINE_S))
        for task in (housekeeping, counting, packing):
            task.cancel()
        stops = asyncio.to_thread(engine.stop, STOP_DEADLINE_S), *([] if planner is None else [planner.stop()])
        await asyncio.gather(*stops)
        return status

    async def _keep_house(self, engine: Engine) -> None:
        while True:
            engine.break_if_device_stalls(time.monotonic_ns())
            if self._authenticator is not None:
                self._authenticator.look()
            self._garbage.watch(open_sessions=len(engine.sessions), ended_sessions=engine.ended.sessions)
            await asyncio.sleep(KEEP_HOUSE_EVERY_S)

    async def _pack_when_idle(self, engine: Engine) -> None:
        """Has the kernels of single ops compiled for a GPU. Those for a processor come with the package."""
        info = engine.device.info
        if info.is_gpu and pack_of(engine.device) is None:
            await pack_when_idle(command_for(info.architecture), lambda: not engine.sessions)

    async def _watch_open_files(self) -> None:
        watch = OpenFilesWatch(raise_open_file_limit())
        while True:
            usage = await asyncio.to_thread(process_usage)
            watch.look(usage.open_files, time.monotonic())
            await asyncio.sleep(COUNT_FILES_EVERY_S)

    def _start_inspection(self, engine: Engine, publisher: Publisher) -> InspectionServer:
        listen = self._config.listen
        call_on_loop = asyncio.get_running_loop().call_soon_threadsafe
        control = EngineControl(engine, LoopThread(call_on_loop), lambda: self._end(0))
        snapshots = SnapshotReader(publisher.publish, lambda: publisher.snapshot, call_on_loop)
        is_local = listen.http.is_loopback()
        app = create_app(snapshots, self._authenticator, control, settings=self._setting_views, is_local=is_local)
        counted = CountedRefusals(app, self._inspection_refusals)
        inspection = InspectionServer(
            counted,
            bind(listen.http),
            certificate=self._http_certificate,
            count_refusal=self._inspection_refusals.add,
        )
        inspection.start()
        return inspection

    def _announce(self, backend: str, detail: str, grpc_port: int, http_port: int) -> None:
        """The one line on standard output, for people and for whoever started this process."""
        listen = self._config.listen
        line = {
            "grpc": str(Address(listen.grpc.host, grpc_port)),
            "http": str(Address(listen.http.host, http_port)),
            "backend": backend,
            "detail": detail,
        }
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()

    def _reload(self, engine: Engine, listeners: Listeners) -> None:
        """Loads the settings again, and what says who may call: a fault of one keeps nobody from reading the others."""
        self._reload_settings(engine)
        if self._authenticator is not None:
            self._authenticator.read_again()
        self._reload_certificates(listeners)

    def _reload_certificates(self, listeners: Listeners) -> None:
        """Lets each listener read the certificate for its next connection. If it cannot be used, the log tells now."""
        try:
            certificate_of(self._config.listen)
        except ConfigurationError as error:
            log.error("the certificate cannot be used: %s", error)  # noqa: TRY400 - no bug
        listeners.reload(self._config)
        if self._http_certificate is not None:
            self._http_certificate.read_again()

    def _reload_settings(self, engine: Engine) -> None:
        """Loads the settings again. If they are wrong, all old settings stay in force."""
        try:
            self._loaded, applied, needs_restart = reload(self._loaded, self._load_again())
        except ConfigurationError as error:
            log.error("the settings stay as they are, because they cannot be loaded: %s", error)  # noqa: TRY400 - no bug
            return
        if {"log.level", "log.style"}.intersection(applied):
            configure_logs(self._config.log.level, self._config.log.style, audits=self._config.log.audit)
        engine.reconfigure(self._config)
        self._setting_views.update(_setting_views(self._loaded))  # inspection's thread reads it; no key is new
        log.info("the settings were loaded again; changed: %s", ", ".join(applied) or "none")
        if needs_restart:
            log.warning("these changed settings need a restart: %s", ", ".join(needs_restart))

    def _end(self, status: int) -> None:
        """Begins to end the process. The second call ends it now."""
        if self._ended.done():
            self._hurry.set()
        else:
            self._ended.set_result(status)

    def _end_broken(self, error: BaseException) -> None:
        """A device in an unknown state must not go on answering."""
        log.critical("the process ends: %r", error, exc_info=error)
        self._end(1)
        self._hurry.set()


def _setting_views(loaded: Loaded) -> dict[str, SettingView]:
    return {
        name: SettingView(value=plain_value_of(loaded.config, name), origin=origin)
        for name, origin in loaded.origins.items()
    }


async def drain(
    engine: Engine, publisher: Publisher, listeners: Listeners, drain_s: float, hurry: asyncio.Event
) -> None:
    """Opens no more sessions, lets each go on until its work is finished, and then ends it.

    Sessions that are still busy after `drain_s`, or when `hurry` is set, end all the same.
    """
    ends_at_ns = time.monotonic_ns() + round(drain_s * 1e9)
    reason = CaseError("draining", "the server is shutting down")
    engine.drain(ends_at_ns)
    publisher.publish()
    await listeners.tell_draining()
    while engine.sessions and not hurry.is_set() and (now_ns := time.monotonic_ns()) < ends_at_ns:
        engine.dismiss([session for session in engine.sessions.values() if may_end(session, now_ns)], reason)
        with suppress(TimeoutError):
            await asyncio.wait_for(hurry.wait(), LOOK_EVERY_S)
    engine.dismiss(engine.sessions.values(), reason)
