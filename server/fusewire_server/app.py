"""Puts a server process together, runs it until it is told to end, and takes it apart."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import sys
import time
from collections.abc import Callable

from fusewire_protos.address import Address
from fusewire_protos.errors import ConfigurationError, FusewireError
from fusewire_server.access.certificates import certificate_of
from fusewire_server.access.tokens import Authenticator, check_protected_mode
from fusewire_server.backends import devices_of
from fusewire_server.config.config import Config, Loaded, plain_value_of
from fusewire_server.config.reload import reload
from fusewire_server.engines.one_engine import prepare_process
from fusewire_server.engines.serving import Alone, InFrontOfEngines, Serving
from fusewire_server.host.descriptors import OpenFilesWatch, raise_open_file_limit
from fusewire_server.host.event_loop import loop_factory
from fusewire_server.host.garbage_collector import GarbageCollector
from fusewire_server.host.logs import configure_logs
from fusewire_server.host.process_usage import process_usage
from fusewire_server.inspect.application import create_app
from fusewire_server.inspect.requests.refusals import CountedRefusals, RefusalCounts
from fusewire_server.inspect.server import InspectionServer, bind
from fusewire_server.inspect.views import SettingView

log = logging.getLogger("fusewire.app")

LOOK_AT_TOKENS_EVERY_S = 0.1
COUNT_FILES_EVERY_S = 5.0
STOP_DEADLINE_S = 0.5  # for what inspection is doing
STOP_GRACE_S = 0.75  # for farewells and what is being written; it ends as soon as all calls have


def run(loaded: Loaded, load_again: Callable[[], Loaded]) -> int:
    """Serves until SIGTERM or SIGINT; the exit status. Raises ConfigurationError or OSError if it cannot begin to.

    On SIGHUP it takes over the settings that `load_again` returns and that may change in service, and reads the token
    file and the certificates again.
    """
    config = loaded.config
    configure_logs(config.log.level, config.log.style, audits=config.log.audit)
    check_protected_mode(config.listen)
    prepare_process()
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
        serving = self._serving()
        backend = await serving.start()
        inspection = self._start_inspection(serving)
        port = await serving.listen()
        looking = asyncio.create_task(self._look_at_tokens(), name="tokens")
        counting = asyncio.create_task(self._watch_open_files(), name="open files")
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end, 0)
        loop.add_signal_handler(signal.SIGHUP, self._reload, serving)
        self._announce(backend.name, backend.detail, port, inspection.port)
        status = await self._ended
        await serving.drain(self._config.limits.drain_s, self._hurry)
        # Side by side, because the process is to end within two seconds of the drain.
        await asyncio.gather(serving.stop_listening(STOP_GRACE_S), asyncio.to_thread(inspection.stop, STOP_DEADLINE_S))
        for task in (looking, counting):
            task.cancel()
        await serving.stop()
        return status

    def _serving(self) -> Serving:
        """Returns what clients reach: an engine in this process, or those of several devices. Raises as `run` does."""
        config, refusals = self._config, self._inspection_refusals
        devices = devices_of(config.device)
        if devices is None:
            return Alone(config, self._authenticator, self._garbage, refusals, self._end_broken, self._end_in_order)
        return InFrontOfEngines(config, devices, refusals, self._end_broken, self._end_in_order)

    async def _look_at_tokens(self) -> None:
        while True:
            if self._authenticator is not None:
                self._authenticator.look()
            await asyncio.sleep(LOOK_AT_TOKENS_EVERY_S)

    async def _watch_open_files(self) -> None:
        watch = OpenFilesWatch(raise_open_file_limit())
        while True:
            usage = await asyncio.to_thread(process_usage)
            watch.look(usage.open_files, time.monotonic())
            await asyncio.sleep(COUNT_FILES_EVERY_S)

    def _start_inspection(self, serving: Serving) -> InspectionServer:
        listen = self._config.listen
        app = create_app(
            serving.snapshots,
            self._authenticator,
            serving.control,
            settings=self._setting_views,
            is_local=listen.http.is_loopback(),
        )
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

    def _reload(self, serving: Serving) -> None:
        """Loads the settings again, and what says who may call: a fault of one keeps nobody from reading the others."""
        self._reload_settings()
        if self._authenticator is not None:
            self._authenticator.read_again()
        self._reload_certificates(serving)

    def _reload_certificates(self, serving: Serving) -> None:
        """Lets each listener read the certificate for its next connection. If it cannot be used, the log tells now."""
        try:
            certificate_of(self._config.listen)
        except ConfigurationError as error:
            log.error("the certificate cannot be used: %s", error)  # noqa: TRY400 - no bug
        serving.reload(self._config)
        if self._http_certificate is not None:
            self._http_certificate.read_again()

    def _reload_settings(self) -> None:
        """Loads the settings again. If they are wrong, all old settings stay in force."""
        try:
            self._loaded, applied, needs_restart = reload(self._loaded, self._load_again())
        except ConfigurationError as error:
            log.error("the settings stay as they are, because they cannot be loaded: %s", error)  # noqa: TRY400 - no bug
            return
        if {"log.level", "log.style"}.intersection(applied):
            configure_logs(self._config.log.level, self._config.log.style, audits=self._config.log.audit)
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

    def _end_in_order(self) -> None:
        self._end(0)

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
