"""The front ends of a server: how they start, what they are told, and how they end."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import grpc
import psutil
import pytest

from fusewire_protos.address import Address
from fusewire_protos.errors import ConfigurationError, ServerFault
from fusewire_server.access.tokens import Scope, mint
from fusewire_server.config.config import Config, Listen, Log
from fusewire_server.front_ends import front_ends as front_ends_module
from fusewire_server.front_ends.front_ends import FrontEnds
from fusewire_server.processes import children
from tests.patience import HANGS_S
from tests.server.front_ends.test_process import HERE, NO_ENGINE, NOT_SERVING, SERVING, health, listen_here
from tests.server.wire import status_of
from tests.server.world import DEADLINE_S, run, until

pytestmark = pytest.mark.faults  # processes are started and killed, a hundred in all
STATUS_OF_A_TEST = 7
FAILING = (sys.executable, "-c", f"raise SystemExit({STATUS_OF_A_TEST})")


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "START_AGAIN_S", 0.01)


def front_ends(config: Config | None = None, refusals: list[int] | None = None) -> FrontEnds:
    count = (refusals if refusals is not None else []).append
    return FrontEnds(config or Config(listen=listen_here()), NO_ENGINE, count)


@asynccontextmanager
async def started(
    count: int, config: Config | None = None, refusals: list[int] | None = None
) -> AsyncIterator[tuple[FrontEnds, int]]:
    """Front ends, and their port. In the end none of their processes is left."""
    made = front_ends(config, refusals)
    try:
        async with asyncio.timeout(DEADLINE_S):
            yield made, await made.start(count)
    finally:
        await made.stop(0.0)
    assert running() == set()


def running() -> set[int]:
    """The front ends that run."""
    return {child.pid for child in psutil.Process().children() if _is_front_end(child)}


def _is_front_end(child: psutil.Process) -> bool:
    """Returns whether a process is a front end: one that tests before have left may run beside them."""
    with suppress(psutil.NoSuchProcess):
        return child.status() != psutil.STATUS_ZOMBIE and "fusewire_server.front_ends" in child.cmdline()
    return False


async def until_there_are(count: int, but: set[int]) -> set[int]:
    """Waits until so many front ends run, none of which is one of `but`. Returns them."""
    await until(lambda: len(running() - but) == count and not running() & but)
    return running()


async def until_health_is(port: int, status: int) -> None:
    """Until front ends have answered so twenty times in a row."""
    in_row = 0
    while in_row < 20:
        in_row = in_row + 1 if await health(port) == status else 0


def test_all_of_them_share_one_port() -> None:
    async def test() -> None:
        async with started(3) as (_, port):
            assert len(running()) == 3
            for _ in range(12):
                assert await health(port) == SERVING
            kill(running().pop())
            for _ in range(12):
                assert await health(port) == SERVING

    run(test())


def kill(process: int) -> None:
    os.kill(process, signal.SIGKILL)


def test_the_port_is_the_one_that_is_set() -> None:
    async def test() -> None:
        async with started(1) as (_, port):
            pass
        async with started(2, Config(listen=Listen(grpc=Address(HERE, port)))) as (_, again):
            assert again == port

    run(test())


@pytest.mark.parametrize("host", ["::1", "localhost"])
def test_they_listen_on_other_hosts(host: str) -> None:
    async def test() -> None:
        async with started(2, Config(listen=Listen(grpc=Address(host, 0)))) as (_, port):
            address = str(Address(host, port))
            async with grpc.aio.insecure_channel(address) as channel:
                await asyncio.wait_for(channel.channel_ready(), DEADLINE_S)

    run(test())


@pytest.mark.parametrize("shared", [False, True], ids=["alone", "as front ends do"])
def test_a_port_that_another_process_has_is_refused_in_words(*, shared: bool) -> None:
    async def test() -> None:
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, shared)
            other.bind((HERE, 0))
            other.listen()
            port = other.getsockname()[1]
            made = front_ends(Config(listen=Listen(grpc=Address(HERE, port))))
            text = f"^cannot listen on listen.grpc = {HERE}:{port}: Address already in use$"
            with pytest.raises(ConfigurationError, match=text):
                await made.start(2)
        assert running() == set()

    run(test())


def test_other_front_ends_do_not_get_their_port() -> None:
    async def test() -> None:
        async with started(1) as (_, port):
            with pytest.raises(ConfigurationError, match="Address already in use"):
                await front_ends(Config(listen=Listen(grpc=Address(HERE, port)))).start(1)
            assert len(running()) == 1

    run(test())


def test_what_one_of_them_cannot_do_is_refused_in_words_and_none_is_left(tmp_path: Path) -> None:
    async def test() -> None:
        made = front_ends(Config(listen=listen_here(token_file=tmp_path / "lacking")))
        with pytest.raises(ConfigurationError, match=f"^cannot read the token file {tmp_path / 'lacking'}: "):
            await made.start(3)
        assert running() == set()

    run(test())


def test_one_that_dies_before_it_listens_is_a_fault_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front_ends_module, "_COMMAND", FAILING)

    async def test() -> None:
        text = f"^a front end has ended with status {STATUS_OF_A_TEST} before it listened$"
        with pytest.raises(ServerFault, match=text):
            await front_ends().start(2)
        assert running() == set()

    run(test())


def test_a_start_that_is_cancelled_leaves_none() -> None:
    async def test() -> None:
        made = front_ends()
        starting = asyncio.create_task(made.start(2))
        await until(lambda: len(running()) == 2)
        starting.cancel()
        await asyncio.wait((starting,))
        await made.stop(0.0)
        assert running() == set()

    run(test())


def test_one_that_is_killed_is_replaced_by_one_that_knows_what_has_changed(tmp_path: Path) -> None:
    async def test() -> None:
        async with started(2) as (made, port):
            made.tell_draining()
            await until_health_is(port, NOT_SERVING)
            before = running()
            for process in before:
                kill(process)
            await until_there_are(2, before)
            await until_health_is(port, NOT_SERVING)

    run(test())


def test_it_is_tried_again_until_one_can_be_started(caplog: pytest.LogCaptureFixture) -> None:
    def failures() -> int:
        return sum("cannot be started, and is tried again" in record.getMessage() for record in caplog.records)

    async def test() -> None:
        async with started(1) as (made, port):
            (child,) = made._children
            kind = child._kind
            child._kind = kind._replace(command=FAILING)
            kill(*running())
            await until(lambda: failures() >= 2)
            child._kind = kind._replace(command=("/no/such/program",))
            await until(lambda: "No such file" in caplog.text)
            child._kind = kind
            assert await health(port) == SERVING

    with caplog.at_level(logging.ERROR, "fusewire.processes"):
        run(test())
    assert f"a front end has ended with status {-signal.SIGKILL}; another one takes its place" in caplog.text


def test_refused_calls_are_counted(tmp_path: Path) -> None:
    refusals: list[int] = []

    async def test() -> None:
        mint(tmp_path / "tokens", tenant="lab", scope=Scope.USE)
        config = Config(listen=listen_here(token_file=tmp_path / "tokens"), log=Log(audit=False))
        async with started(2, config, refusals) as (_, port):
            for _ in range(9):
                assert (await status_of(health(port)))[0] is grpc.StatusCode.UNAUTHENTICATED
            await until(lambda: sum(refusals) == 9)

    run(test())
    assert sum(refusals) == 9


def test_a_reload_reaches_all_of_them(certificate: tuple[Path, Path], tmp_path: Path) -> None:
    async def test() -> None:
        cert, key = tmp_path / "served.pem", tmp_path / "served.key"
        old = [path.read_bytes() for path in certificate]
        cert.write_bytes(old[0])
        key.write_bytes(old[1])
        config = Config(listen=listen_here(tls_cert=cert, tls_key=key))
        async with started(2, config) as (made, port):
            assert {await shown(port) for _ in range(12)} == {old[0].decode()}
            new = [tmp_path / name for name in ("new.pem", "new.key")]
            await make_certificate(*new)
            cert.write_bytes(new[0].read_bytes())
            key.write_bytes(new[1].read_bytes())
            made.reload(config)
            while {await shown(port) for _ in range(12)} != {new[0].read_text()}:
                pass

    run(test())


async def shown(port: int) -> str:
    """The certificate that one of them shows."""
    return await asyncio.to_thread(ssl.get_server_certificate, (HERE, port), timeout=HANGS_S)


async def make_certificate(cert: Path, key: Path) -> None:
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    command += ["-subj", "/CN=new", "-keyout", str(key), "-out", str(cert)]
    made = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.DEVNULL)
    assert await made.wait() == 0


def test_what_has_changed_is_told_to_none_that_has_just_died() -> None:
    async def test() -> None:
        async with started(2) as (made, port):
            before = running()
            for process in before:
                kill(process)
            for _ in range(20):  # some of them before it is noticed, and some while others begin
                made.reload(replace(made._config, log=Log(level="error")))
                made.tell_draining()
                await asyncio.sleep(0)
            await until_there_are(2, before)
            await until_health_is(port, NOT_SERVING)

    run(test())


def stop_it(process: int) -> None:
    os.kill(process, signal.SIGSTOP)


@pytest.mark.parametrize("harm", [kill, stop_it])
def test_they_end_when_they_are_stopped_whatever_has_happened_to_one(harm: Callable[[int], None]) -> None:
    async def test() -> None:
        made = front_ends()
        await made.start(2)
        harm(running().pop())
        async with asyncio.timeout(DEADLINE_S):
            await made.stop(0.5)
        assert running() == set()

    run(test())


def test_they_end_when_they_are_stopped_while_others_begin() -> None:
    async def test() -> None:
        made = front_ends()
        await made.start(1)
        before = running()
        kill(*before)
        await until_there_are(1, before)
        await made.stop(0.5)
        assert running() == set()

    run(test())


def test_their_port_is_free_when_they_have_ended() -> None:
    async def test() -> None:
        made = front_ends()
        port = await made.start(1)
        await made.stop(1.0)
        with socket.socket() as other:
            other.bind((HERE, port))

    run(test())
