"""The front ends of a server, which share one port: the system gives each connection to one of them.

A front end has no state. If one ends, its streams break, and their sessions are resumed over others.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable

from fusewire_server.config.config import Config
from fusewire_server.front_ends.commands import (
    REPORTS,
    Begin,
    Command,
    Drain,
    Engines,
    Refused,
    Reload,
    Report,
    encode_command,
)
from fusewire_server.front_ends.placement import EngineAt
from fusewire_server.front_ends.reserved_port import ReservedPort
from fusewire_server.processes import children
from fusewire_server.processes.children import Child, Kind

_COMMAND = (sys.executable, "-m", "fusewire_server.front_ends")


class FrontEnds:
    """The front ends of one server. They pass calls on to `engines`."""

    def __init__(self, config: Config, engines: tuple[EngineAt, ...], count_refusals: Callable[[int], None]) -> None:
        """`count_refusals` is told how many calls they refuse."""
        self._config = config
        self._engines = engines
        self._count_refusals = count_refusals
        self._is_draining = False
        self._reserved: ReservedPort | None = None
        self._children: list[Child] = []

    async def start(self, count: int) -> int:
        """Starts front ends, and returns their port.

        Raises ConfigurationError if they cannot listen, and ServerFault or OSError if they cannot be started.
        """
        self._reserved = reserved = ReservedPort(self._config.listen.grpc)
        kind = Kind("a front end", _COMMAND, REPORTS)
        self._children = [Child(kind, lambda: self._greeting(reserved.port), self._hear) for _ in range(count)]
        begun = await asyncio.gather(*[child.start() for child in self._children], return_exceptions=True)
        for failure in begun:
            if failure is not None:
                await self.stop(0.0)
                raise failure
        for child in self._children:
            child.keep()
        return reserved.port

    def tell_engines(self, engines: tuple[EngineAt, ...]) -> None:
        """Lets them know which engines take calls, and what these have to do."""
        self._engines = engines
        self._tell_all(Engines(engines))

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
        await children.stop(self._children, within_s)
        if self._reserved is not None:
            self._reserved.close()

    def _greeting(self, port: int) -> bytes:
        begin = encode_command(Begin(self._config, port, self._engines))
        return begin + encode_command(Drain()) if self._is_draining else begin

    def _hear(self, report: Report) -> None:
        if isinstance(report, Refused):
            self._count_refusals(report.calls)

    def _tell_all(self, command: Command) -> None:
        line = encode_command(command)
        for child in self._children:
            child.tell(line)
