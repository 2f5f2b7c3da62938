"""Starts the front ends of a server, starts a new one for each that ends, and tells them what has changed.

They share one port, and the system gives each connection to one of them. A front end has no state. If one ends, its
streams break, and their sessions are resumed over others.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from contextlib import suppress

from fusewire_protos.errors import ConfigurationError, FusewireError, ServerFault
from fusewire_server.config.config import Config
from fusewire_server.front_ends.commands import (
    Begin,
    Command,
    Drain,
    Fault,
    Refused,
    Reload,
    Report,
    decode_report,
    encode_command,
)
from fusewire_server.front_ends.reserved_port import ReservedPort

log = logging.getLogger("fusewire.front_ends")

_COMMAND = (sys.executable, "-m", "fusewire_server.front_ends")
_START_AGAIN_S = 1.0  # after a front end has ended
_KILLED_WITHIN_S = 1.0


class FrontEnds:
    """The front ends of one server."""

    def __init__(self, config: Config, name: str, secret: bytes, count_refusals: Callable[[int], None]) -> None:
        """They pass calls on to the abstract socket `name`. `count_refusals` is told how many calls they refuse."""
        self._config = config
        self._name = name
        self._secret = secret
        self._count_refusals = count_refusals
        self._is_draining = False
        self._reserved: ReservedPort | None = None
        self._processes: set[asyncio.subprocess.Process] = set()
        self._keeping: list[asyncio.Task[None]] = []

    async def start(self, count: int) -> int:
        """Starts front ends, and returns their port.

        Raises ConfigurationError if they cannot listen, and ServerFault or OSError if they cannot be started.
        """
        self._reserved = ReservedPort(self._config.listen.grpc)
        begun = await asyncio.gather(*[self._begin(self._reserved.port) for _ in range(count)], return_exceptions=True)
        processes = [each for each in begun if not isinstance(each, BaseException)]
        for failure in begun:
            if isinstance(failure, BaseException):
                await self.stop(0.0)
                raise failure
        self._keeping = [asyncio.create_task(self._keep(each, self._reserved.port)) for each in processes]
        return self._reserved.port

    def tell_draining(self) -> None:
        """Lets health checks know that the server opens no more sessions."""
        self._is_draining = True
        self._tell_all(Drain())

    def reload(self, config: Config) -> None:
        """Has them take over settings, and read tokens and certificates again."""
        self._config = config
        self._tell_all(Reload(config))

    async def stop(self, within_s: float) -> None:
        """Ends them: after they have written what they have, or after this time."""
        for task in self._keeping:
            task.cancel()
        await asyncio.gather(*self._keeping, return_exceptions=True)
        for process in self._processes:
            _input_of(process).close()
        await self._wait_for_ends(within_s)
        for process in self._processes:
            with suppress(ProcessLookupError):
                process.kill()
        await self._wait_for_ends(_KILLED_WITHIN_S)
        if self._reserved is not None:
            self._reserved.close()

    async def _wait_for_ends(self, within_s: float) -> None:
        with suppress(TimeoutError):  # asyncio may never report the end of a process that was killed during its start
            async with asyncio.timeout(within_s):
                await asyncio.gather(*[process.wait() for process in self._processes])

    async def _keep(self, process: asyncio.subprocess.Process, port: int) -> None:
        """Counts what a front end refuses, until it ends. Then starts another one in its place."""
        while True:
            while (report := await _report_of(process)) is not None:
                if isinstance(report, Refused):
                    self._count_refusals(report.calls)
            self._processes.discard(process)
            log.error("a front end has ended with status %s; another one takes its place", await process.wait())
            process = await self._begin_again(port)

    async def _begin_again(self, port: int) -> asyncio.subprocess.Process:
        while True:
            await asyncio.sleep(_START_AGAIN_S)
            try:
                return await self._begin(port)
            except (FusewireError, OSError, RuntimeError) as error:  # such as a lack of descriptors, memory or threads
                log.error("a front end cannot be started, and is tried again: %s", error)  # noqa: TRY400 - no bug

    async def _begin(self, port: int) -> asyncio.subprocess.Process:
        """Starts a front end, and waits until it listens. Raises what `start` does."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*_COMMAND, stdin=pipe, stdout=pipe)
        self._processes.add(process)
        _tell(process, Begin(self._config, port, self._name, self._secret))
        if self._is_draining:
            _tell(process, Drain())
        report = await _report_of(process)
        if report is None or isinstance(report, Fault):
            self._processes.discard(process)
            status = await process.wait()
            if report is not None:
                raise ConfigurationError(report.text)
            raise ServerFault(f"a front end has ended with status {status} before it listened")
        return process

    def _tell_all(self, command: Command) -> None:
        for process in self._processes:
            _tell(process, command)


def _tell(process: asyncio.subprocess.Process, command: Command) -> None:
    """Tells a front end. One that has ended needs to know nothing."""
    if not _input_of(process).is_closing():
        _input_of(process).write(encode_command(command))


async def _report_of(process: asyncio.subprocess.Process) -> Report | None:
    """Returns what a front end reports next, or None if it has ended."""
    assert process.stdout is not None, "it is a pipe"
    line = await process.stdout.readline()
    return decode_report(line) if line else None


def _input_of(process: asyncio.subprocess.Process) -> asyncio.StreamWriter:
    assert process.stdin is not None, "it is a pipe"
    return process.stdin
