"""The process of a front end: listens on the server's port until its standard input ends."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import replace

from fusewire_protos.address import Address
from fusewire_protos.errors import ConfigurationError
from fusewire_server.access.certificates import CertificateFiles, certificate_of
from fusewire_server.access.interceptor import Access
from fusewire_server.access.tokens import Authenticator
from fusewire_server.front_ends.commands import (
    Begin,
    Command,
    Drain,
    Engines,
    Listening,
    Refused,
    Reload,
    Report,
    decode_command,
    encode_report,
)
from fusewire_server.front_ends.relay import Relay
from fusewire_server.host.descriptors import raise_open_file_limit
from fusewire_server.host.event_loop import loop_factory
from fusewire_server.host.logs import configure_logs
from fusewire_server.host.malloc import keep_freed_memory
from fusewire_server.host.timer_slack import reduce_timer_slack
from fusewire_server.processes import child
from fusewire_server.processes.messages import Fault
from fusewire_server.transport.grpc_server import Serving, longest_message, start_grpc

LOOK_EVERY_S = 0.1  # at the file of tokens, and at what is to be reported
STOP_GRACE_S = 0.75  # for what is being written


def main() -> int:
    """Runs a front end; the exit status. What it cannot do it tells the server."""
    reduce_timer_slack()
    keep_freed_memory()
    raise_open_file_limit()
    # What the server does not read now is reported later, so that a stopped server stops no front end.
    os.set_blocking(sys.stdout.fileno(), False)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        try:
            runner.run(_serve())
        except ConfigurationError as error:
            _report(Fault(str(error)))
            return 1
    return 0


async def _serve() -> None:
    lines = child.command_lines()
    line = await anext(lines, None)
    if line is None:
        return  # the server has ended
    begin = decode_command(line)
    assert isinstance(begin, Begin), "the first command"
    front_end = _FrontEnd(begin)
    await front_end.start()
    async for line in lines:
        await front_end.obey(decode_command(line))
    await front_end.stop()


class _FrontEnd:
    """Serves gRPC, and obeys the server."""

    def __init__(self, begin: Begin) -> None:
        self._begin = begin
        self._configure_logs(begin)
        listen = begin.config.listen
        self._authenticator = Authenticator(listen.token_file) if listen.token_file else None
        self._certificate: CertificateFiles | None = certificate_of(listen)
        self._relay = Relay(begin.engines, longest_message(begin.config.limits.message_bytes))
        self._refused_calls = 0  # that are not reported yet
        self._looking = asyncio.create_task(self._look())
        self._serving: Serving

    async def start(self) -> None:
        """Listens, and reports it. Raises ConfigurationError."""
        begin, config = self._begin, self._begin.config
        message_bytes = config.limits.message_bytes
        self._serving = await start_grpc(
            replace(config.listen, grpc=Address(config.listen.grpc.host, begin.port)),
            self._relay.methods,
            Access(self._authenticator),
            self._certificate,
            message_bytes=message_bytes,
            count_refusal=self._count_refusal,
            shares_port=True,
        )
        _report(Listening())

    async def obey(self, command: Command) -> None:
        if isinstance(command, Drain):
            await self._serving.status.enter_graceful_shutdown()
        elif isinstance(command, Engines):
            self._relay.engines = list(command.engines)
        elif isinstance(command, Reload):
            self._configure_logs(command)
            if self._authenticator is not None:
                self._authenticator.read_again()
            if self._certificate is not None:
                self._certificate.read_again()

    async def stop(self) -> None:
        self._looking.cancel()
        await self._serving.server.stop(STOP_GRACE_S)

    def _configure_logs(self, command: Begin | Reload) -> None:
        settings = command.config.log
        configure_logs(settings.level, settings.style, audits=settings.audit)

    def _count_refusal(self) -> None:
        self._refused_calls += 1

    async def _look(self) -> None:
        while True:
            if self._authenticator is not None:
                self._authenticator.look()
            if self._refused_calls and _report(Refused(self._refused_calls)):
                self._refused_calls = 0
            await asyncio.sleep(LOOK_EVERY_S)


def _report(report: Report) -> bool:
    """Tells the server, and returns whether it takes this now."""
    return child.report(encode_report(report))
