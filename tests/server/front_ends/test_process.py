"""The process of one front end, which a test tells what its server would."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from fusewire_protos.address import Address
from fusewire_server.access.tokens import Scope, mint
from fusewire_server.config.config import Config, Listen, Log
from fusewire_server.front_ends import process as process_module
from fusewire_server.front_ends.commands import (
    Begin,
    Command,
    Drain,
    Listening,
    Refused,
    Reload,
    Report,
    decode_report,
    encode_command,
)
from fusewire_server.front_ends.placement import EngineAt
from fusewire_server.front_ends.reserved_port import ReservedPort
from fusewire_server.processes.messages import Fault
from tests.server.wire import SERVICE, services, status_of
from tests.server.world import DEADLINE_S, run, until

HERE = "127.0.0.1"
NO_ENGINE = (EngineAt(0, "no-such-engine", bytes(32)),)
PIPE = asyncio.subprocess.PIPE
COMMAND = (sys.executable, "-m", "fusewire_server.front_ends")
SERVING, NOT_SERVING = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING


class FrontEnd(NamedTuple):
    """A front end whose server is the test."""

    process: asyncio.subprocess.Process
    port: int

    def tell(self, command: Command) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(encode_command(command))

    async def report(self) -> Report | None:
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        return decode_report(line) if line else None

    async def end(self) -> tuple[int, str]:
        """Ends its standard input. Returns its exit status and what it has written to standard error."""
        _, errors = await self.process.communicate(b"")
        assert self.process.returncode is not None
        return self.process.returncode, errors.decode()


@asynccontextmanager
async def front_end(config: Config | None = None) -> AsyncIterator[FrontEnd]:
    """A front end with these settings, which has no engine; without settings it has not been told to begin."""
    reserved = ReservedPort(Address(HERE, 0))
    process = await asyncio.create_subprocess_exec(*COMMAND, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    started = FrontEnd(process, reserved.port)
    try:
        async with asyncio.timeout(DEADLINE_S):
            if config is not None:
                started.tell(Begin(config, reserved.port, NO_ENGINE))
            yield started
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()
        reserved.close()


@asynccontextmanager
async def listening(listen: Listen | None = None, log: Log | None = None) -> AsyncIterator[FrontEnd]:
    async with front_end(Config(listen=listen or listen_here(), log=log or Log())) as started:
        assert await started.report() == Listening()
        yield started


def listen_here(**settings: Any) -> Listen:
    return Listen(grpc=Address(HERE, 0), **settings)


@asynccontextmanager
async def channel_to(port: int) -> AsyncIterator[Any]:
    options = [("grpc.use_local_subchannel_pool", 1)]
    async with grpc.aio.insecure_channel(f"{HERE}:{port}", options=options) as channel:
        yield channel


async def health(port: int, metadata: tuple[tuple[str, str], ...] = ()) -> int:
    async with channel_to(port) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        answer = await stub.Check(health_pb2.HealthCheckRequest(), metadata=metadata, wait_for_ready=True)
        status: int = answer.status
        return status


def test_it_answers_health_checks_and_reflection_until_its_standard_input_ends() -> None:
    async def test() -> None:
        async with listening() as started:
            assert await health(started.port) == SERVING
            async with channel_to(started.port) as channel:
                assert "fusewire.v1.Fusewire" in await services(channel)
            assert await started.end() == (0, "")

    run(test())


def test_it_ends_quietly_if_its_server_is_gone_before_it_begins() -> None:
    async def test() -> None:
        async with front_end() as started:
            assert await started.end() == (0, "")

    run(test())


def test_it_ends_though_nobody_reads_what_it_reports() -> None:
    async def test() -> None:
        async with front_end(Config(listen=listen_here())) as started:
            assert started.process.stdout is not None
            started.process.stdout._transport.close()  # type: ignore[attr-defined]  # as when the server is killed
            assert await started.end() == (0, "")

    run(test())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_leaves_signals_to_its_server(number: signal.Signals) -> None:
    async def test() -> None:
        async with listening() as started:
            started.process.send_signal(number)
            assert await health(started.port) == SERVING
            assert await started.end() == (0, "")

    run(test())


def test_a_call_ends_in_words_where_there_is_no_engine() -> None:
    async def test() -> None:
        async with listening() as started, channel_to(started.port) as channel:
            call = channel.stream_stream(SERVICE + "Session")()
            assert await call.code() is grpc.StatusCode.UNAVAILABLE
            assert await call.details() == "the server's engine cannot be reached: Connection refused"

    run(test())


def test_it_says_why_it_cannot_listen() -> None:
    async def test() -> None:
        other = await asyncio.start_server(lambda *_: None, HERE, 0)
        port: int = other.sockets[0].getsockname()[1]
        async with front_end() as started:
            started.tell(Begin(Config(listen=listen_here()), port, NO_ENGINE))
            report = await started.report()
            assert isinstance(report, Fault)
            assert report.text.startswith(f"cannot listen on listen.grpc = {HERE}:{port}: ")
            status, _ = await started.end()
            assert status == 1
        other.close()
        await other.wait_closed()

    run(test())


def test_it_says_which_file_it_cannot_read(tmp_path: Path) -> None:
    async def test() -> None:
        for listen in (
            listen_here(token_file=tmp_path / "lacking"),
            listen_here(tls_cert=tmp_path / "lacking", tls_key=tmp_path / "lacking"),
        ):
            async with front_end(Config(listen=listen)) as started:
                report = await started.report()
                assert isinstance(report, Fault)
                assert str(tmp_path / "lacking") in report.text
                assert await started.end() == (1, "")

    run(test())


def test_health_checks_learn_of_a_drain_and_it_goes_on() -> None:
    async def test() -> None:
        async with listening() as started:
            started.tell(Drain())
            while await health(started.port) != NOT_SERVING:
                pass
            assert await started.end() == (0, "")

    run(test())


def bearer(token: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {token}"),)


def test_it_refuses_calls_without_a_token_and_reports_how_many(tmp_path: Path) -> None:
    async def test() -> None:
        token = mint(tmp_path / "tokens", tenant="lab", scope=Scope.USE)
        log = Log(style="json")
        async with listening(listen_here(token_file=tmp_path / "tokens"), log) as started:
            for metadata in ((), bearer("wrong.token")):
                assert (await status_of(health(started.port, metadata)))[0] is grpc.StatusCode.UNAUTHENTICATED
            assert await health(started.port, bearer(token)) == SERVING
            refused = 0
            while refused < 2:
                report = await started.report()
                assert isinstance(report, Refused)
                refused += report.calls
            assert refused == 2
            status, errors = await started.end()
            assert status == 0
            assert errors.count("a call was refused") == 2
            assert "wrong.token" not in errors

    run(test())


def test_a_token_is_good_once_it_is_in_the_file_and_no_longer(tmp_path: Path) -> None:
    async def test() -> None:
        path = tmp_path / "tokens"
        mint(path, tenant="lab", scope=Scope.USE)
        async with listening(listen_here(token_file=path), Log(audit=False)) as started:
            token = mint(path, tenant="lab", scope=Scope.USE)
            assert await health(started.port, bearer(token)) == SERVING
            path.write_text("")
            started.tell(Reload(Config(listen=listen_here(token_file=path))))
            assert (await status_of(until_refused(started.port, token)))[0] is grpc.StatusCode.UNAUTHENTICATED

    run(test())


async def until_refused(port: int, token: str) -> None:
    while True:
        await health(port, bearer(token))


def test_a_reload_changes_how_it_logs(tmp_path: Path) -> None:
    async def test() -> None:
        path = tmp_path / "tokens"
        mint(path, tenant="lab", scope=Scope.USE)
        listen = listen_here(token_file=path)
        async with listening(listen, Log(style="json")) as started:
            assert (await status_of(health(started.port)))[0] is grpc.StatusCode.UNAUTHENTICATED
            started.tell(Reload(Config(listen=listen, log=Log(style="json", audit=False))))
            path.unlink()
            assert (await status_of(health(started.port)))[0] is grpc.StatusCode.UNAUTHENTICATED
            _, errors = await started.end()
            assert 1 <= errors.count("a call was refused") <= 2  # the second one may have come before the reload
            assert "new callers are refused" in errors

    run(test())


def test_what_its_server_does_not_take_now_is_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a server that is stopped stops no front end."""
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, "rb"), os.fdopen(write_end, "wb") as full:
        os.set_blocking(write_end, False)
        monkeypatch.setattr(sys, "stdout", full)
        while process_module._report(Refused(1)):
            pass
        assert decode_report(os.read(read_end, 1 << 20).splitlines()[-1]) == Refused(1)
        assert process_module._report(Refused(2))
        assert decode_report(os.read(read_end, 1 << 20)) == Refused(2)


def test_a_server_that_has_ended_is_told_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "wb") as nobodys:
        monkeypatch.setattr(sys, "stdout", nobodys)
        assert not process_module._report(Refused(1))


def test_refusals_that_were_not_taken_are_reported_later(monkeypatch: pytest.MonkeyPatch) -> None:
    reports, takes = list[Report](), [False]

    def report(given: Report) -> bool:
        reports.append(given)
        return takes[0]

    async def test() -> None:
        started = process_module._FrontEnd(Begin(Config(listen=listen_here()), 0, NO_ENGINE))
        for _ in range(3):
            started._count_refusal()
        await until(lambda: len(reports) == 2)
        takes[0] = True
        await until(lambda: len(reports) == 3)
        started._count_refusal()
        await until(lambda: len(reports) == 4)
        started._looking.cancel()

    monkeypatch.setattr(process_module, "_report", report)
    monkeypatch.setattr(process_module, "LOOK_EVERY_S", 0.0)
    monkeypatch.setattr(process_module, "configure_logs", lambda *_, **__: None)
    run(test())
    assert reports == [Refused(3)] * 3 + [Refused(1)]
