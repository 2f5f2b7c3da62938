"""What clients connect to: gRPC in the server's process or in front ends, and what both count and tell."""

from __future__ import annotations

import asyncio
from pathlib import Path

import grpc
import psutil
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from fusewire_kernels.devices.null import NullDevice
from fusewire_protos.address import Address
from fusewire_protos.errors import ConfigurationError
from fusewire_protos.frames import Fetch
from fusewire_server.access.tokens import Scope, mint
from fusewire_server.config.config import Config, Listen
from fusewire_server.engine.engine import Engine
from fusewire_server.listeners import Listeners, front_ends_of
from fusewire_server.programs.counters import TOKEN_DOOR
from fusewire_server.sessions.session import SessionState
from tests.server.parts import upload_beside
from tests.server.wire import LARGE, LARGE_BYTES, Peer, Server, pieces, server, services, status_of
from tests.server.world import DEADLINE_S, run, until


@pytest.mark.parametrize(
    ("setting", "cores", "expected"),
    [
        (None, 1, 0),
        (None, 3, 0),
        (None, 4, 1),
        (None, 11, 2),
        (None, 32, 8),
        (None, 256, 8),
        (0, 256, 0),
        (3, 1, 3),
        (64, 1, 64),
    ],
)
def test_there_are_as_many_front_ends_as_are_set_or_one_for_four_processors(
    setting: int | None, cores: int, expected: int
) -> None:
    assert front_ends_of(setting, cores) == expected


@pytest.mark.parametrize("count", [0, 2])
def test_clients_are_served_with_and_without_front_ends(count: int) -> None:
    async def test() -> None:
        before = {child.pid for child in psutil.Process().children()}
        async with server(front_ends=count) as here:
            assert len({child.pid for child in psutil.Process().children()} - before) == count
            peers = [await peer_of_its_own(here) for _ in range(4)]
            for peer in peers:
                await peer.works(100)
                await peer.send(upload_beside(20, LARGE), Fetch(1, 20))
                await asyncio.wait_for(peer.upload(20, pieces(LARGE_BYTES)), DEADLINE_S)
                await peer.result(1)
                assert await peer.download(1) == LARGE_BYTES
                assert here.engine.sessions[peer.session_id].peer.startswith("ipv4:127.0.0.1:")
                peer.call.cancel()
            sessions = here.engine.sessions
            await until(lambda: all(each.state is SessionState.DETACHED for each in sessions.values()))
            for peer in peers:
                await peer.resume()
                await peer.works(200)
                await peer.channel.close()

    run(test())


async def peer_of_its_own(here: Server) -> Peer:
    """A client with a connection of its own, which the system gives to one of the front ends."""
    options = [("grpc.use_local_subchannel_pool", 1)]
    peer = Peer(grpc.aio.insecure_channel(f"127.0.0.1:{here.port}", options=options))
    await peer.open()
    return peer


@pytest.mark.parametrize("count", [0, 1])
def test_a_refused_call_is_counted_with_and_without_front_ends(count: int, tmp_path: Path) -> None:
    async def test() -> None:
        token = mint(tmp_path / "tokens", tenant="lab", scope=Scope.USE)
        async with server(tmp_path / "tokens", front_ends=count) as here:
            for metadata in ((), (("authorization", "Bearer wrong.token"),)):
                assert (await status_of(services(here.channel, metadata)))[0] is grpc.StatusCode.UNAUTHENTICATED
            peer = await here.peer(("authorization", f"Bearer {token}"))
            await peer.works(100)
            refusals = here.engine.counters.refusals
            await until(lambda: refusals[TOKEN_DOOR, "unauthenticated"] == 2)
            assert refusals.total() == 2

    run(test())


@pytest.mark.parametrize("count", [0, 2])
def test_health_checks_learn_of_a_drain_with_and_without_front_ends(count: int) -> None:
    async def test() -> None:
        async with server(front_ends=count) as here:
            stub = health_pb2_grpc.HealthStub(here.channel)
            watch = stub.Watch(health_pb2.HealthCheckRequest())
            assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
            await here.listeners.tell_draining()
            assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
            watch.cancel()

    run(test())


def test_a_client_that_does_not_read_hinders_no_end_of_the_listeners() -> None:
    async def test() -> None:
        async with server(front_ends=1, unread_s=DEADLINE_S) as here:
            peer = await here.peer()
            await peer.send(upload_beside(20, LARGE), Fetch(1, 20))
            await asyncio.wait_for(peer.upload(20, pieces(LARGE_BYTES)), DEADLINE_S)
            await peer.result(1)
            downloads = [peer.unread_download(1) for _ in range(4)]
            for download in downloads:
                await download.read()
            await asyncio.wait_for(here.listeners.stop(0.1), DEADLINE_S)
            assert (await peer.call.code()) is not grpc.StatusCode.OK
            for download in downloads:
                download.cancel()

    run(test())


@pytest.mark.parametrize("count", [0, 1])
def test_a_port_in_use_is_refused_in_words_with_and_without_front_ends(count: int) -> None:
    async def test() -> None:
        async with server(front_ends=1) as here:
            listen = Listen(grpc=Address("127.0.0.1", here.port), front_ends=count)
            listeners = Listeners(Config(listen=listen), Engine(Config(), NullDevice(), None), None)
            with pytest.raises(ConfigurationError, match=f"^cannot listen on listen.grpc = 127.0.0.1:{here.port}: "):
                await listeners.start()
            await listeners.stop(0.0)
            await (await here.peer()).works(100)

    run(test())
