"""The side of the server: starts child processes, starts a new one for each that ends, tells them and hears them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from fusewire_protos.errors import ConfigurationError, FusewireError, ServerFault
from fusewire_server.host.process_group import wait_for_end
from fusewire_server.processes.messages import Fault, decode

log = logging.getLogger("fusewire.processes")

START_AGAIN_S = 1.0  # after a child process has ended; twice as long after each further attempt that fails
_MOST_DOUBLINGS = 5
_KILLED_WITHIN_S = 1.0
_MOST_LINE_BYTES = 256 << 20


class Kind(NamedTuple):
    """What child processes of one kind have in common."""

    name: str  # for people, with its article
    command: Sequence[str]
    reports: Sequence[type[Any]]


class Child:
    """A process that is kept running. `greeting` makes the lines that each new one is told first.

    `hear` is called with each report, the first of which says that the process has begun. `on_end` is called when it
    has ended.
    """

    def __init__(
        self,
        kind: Kind,
        greeting: Callable[[], bytes],
        hear: Callable[[Any], None],
        *,
        on_end: Callable[[], None] = lambda: None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._kind = kind
        self._greeting = greeting
        self._hear = hear
        self._on_end = on_end
        self._environment = environment
        self._process: asyncio.subprocess.Process | None = None  # while it runs or starts
        self._keeping: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Starts the process, and waits for its first report.

        Raises ConfigurationError if that is a fault, and ServerFault or OSError if it cannot be started.
        """
        pipe = asyncio.subprocess.PIPE
        self._process = process = await asyncio.create_subprocess_exec(
            *self._kind.command, stdin=pipe, stdout=pipe, env=self._environment, limit=_MOST_LINE_BYTES
        )
        self.tell(self._greeting())
        report = await self._report_of(process)
        if report is not None and not isinstance(report, Fault):
            self._hear(report)
            return
        status = await process.wait()
        self._process = None
        if report is not None:
            raise ConfigurationError(report.text)
        raise ServerFault(f"{self._kind.name} has ended with status {status} before it listened")

    def keep(self) -> None:
        """Hears the process until it ends, and then starts another one in its place. So too if none runs yet."""
        self._keeping = asyncio.create_task(self._keep())

    def tell(self, line: bytes) -> None:
        """Tells the process. One that has ended needs to know nothing."""
        if self._process is not None and not _input_of(self._process).is_closing():
            _input_of(self._process).write(line)

    async def _keep(self) -> None:
        while True:
            if self._process is not None:
                process = self._process
                while (report := await self._report_of(process)) is not None:
                    self._hear(report)
                self._process = None
                status = await process.wait()
                log.error("%s has ended with status %s; another one takes its place", self._kind.name, status)
                self._on_end()
            await self._start_again()

    async def _start_again(self) -> None:
        attempts = 0
        while True:
            await asyncio.sleep(START_AGAIN_S * 2 ** min(attempts, _MOST_DOUBLINGS))
            attempts += 1
            try:
                await self.start()
            except (FusewireError, OSError, RuntimeError) as error:  # such as a lack of descriptors, memory or threads
                log.error("%s cannot be started, and is tried again: %s", self._kind.name, error)  # noqa: TRY400
            else:
                return

    async def _report_of(self, process: asyncio.subprocess.Process) -> Any:
        """Returns what the process reports next, or None if it has ended."""
        assert process.stdout is not None, "it is a pipe"
        line = await process.stdout.readline()
        return decode(line, (*self._kind.reports, Fault)) if line.endswith(b"\n") else None


async def stop(children: Iterable[Child], within_s: float) -> None:
    """Ends child processes: after they have done what they have to, or after this time."""
    keeping = [child._keeping for child in children if child._keeping is not None]
    for task in keeping:
        task.cancel()
    await asyncio.gather(*keeping, return_exceptions=True)
    processes = [child._process for child in children if child._process is not None]
    await asyncio.gather(*[wait_for_end(process, within_s) for process in processes])
    for process in processes:
        with suppress(ProcessLookupError):
            process.kill()
    await asyncio.gather(*[wait_for_end(process, _KILLED_WITHIN_S) for process in processes])


def _input_of(process: asyncio.subprocess.Process) -> asyncio.StreamWriter:
    assert process.stdin is not None, "it is a pipe"
    return process.stdin
