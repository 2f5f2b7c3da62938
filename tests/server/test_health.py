"""What a server says of itself to whoever asks over gRPC: health and reflection."""

from __future__ import annotations

import asyncio

import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

import fusewire as fw
from fusewire_protos.frames import Fetch
from fusewire_server.engines.one_engine import drain
from fusewire_server.inspect.application import create_app
from fusewire_server.inspect.snapshots.publisher import Publisher
from fusewire_server.sessions.session import SessionState
from tests.server.inspect.examples import Client, FixedSnapshots, RememberingControl
from tests.server.parts import segment
from tests.server.wire import Server, hello, server, services
from tests.server.world import DEADLINE_S, NEGATE, run, until


def test_health_and_reflection_answer() -> None:
    async def test() -> None:
        async with server() as here:
            stub = health_pb2_grpc.HealthStub(here.channel)
            for name in ("", "fusewire.v1.Fusewire"):
                answer = await stub.Check(health_pb2.HealthCheckRequest(service=name))
                assert answer.status == health_pb2.HealthCheckResponse.SERVING
            assert "fusewire.v1.Fusewire" in await services(here.channel)

    run(test())


async def until_there_is_work(here: Server) -> None:
    """Until the server has a fetch that it cannot answer yet: a session that has long been quiet ends untold."""
    await until(lambda: any(session.fetches for session in here.engine.sessions.values()))


async def drained(here: Server, drain_s: float = DEADLINE_S) -> Publisher:
    """Drains to the end, as a process does before it ends."""
    publisher = Publisher(here.engine, "1")
    await drain(here.engine, publisher, here.listeners.tell_draining, drain_s, asyncio.Event())
    return publisher


def test_a_server_that_drains_tells_each_session_and_ends_it_in_words() -> None:
    async def test() -> None:
        async with server() as here:
            peer, away = [await here.peer() for _ in range(2)]
            session = here.engine.sessions[away.session_id]
            away.call.cancel()
            await until(lambda: session.state is SessionState.DETACHED)
            here.engine.hold()
            await peer.send(segment(NEGATE, 100, 10), Fetch(1, 100))
            await until_there_is_work(here)
            draining = asyncio.create_task(drained(here))
            while not (frame := await peer.next()).draining_ms:
                pass
            assert 0 < frame.draining_ms <= DEADLINE_S * 1000
            here.engine.unhold()
            assert await peer.goodbye() == "draining"
            await draining
            assert not here.engine.sessions
            await away.connect().write(hello(session_id=away.session_id, server_instance=away.welcome.server_instance))
            assert await away.goodbye() == "draining"
            assert peer.farewell == away.farewell == "the server is shutting down"

    run(test())


def test_work_that_was_begun_is_finished_before_its_session_ends() -> None:
    async def test() -> None:
        async with server() as here:
            session = await asyncio.to_thread(fw.connect, f"127.0.0.1:{here.port}", timeout=DEADLINE_S)
            x = await asyncio.to_thread(session.array, [1.0, 2.0])
            here.engine.hold()
            pending = await asyncio.to_thread((x + 1).future)
            await until_there_is_work(here)
            draining = asyncio.create_task(drained(here))
            await until(lambda: session.is_draining)
            assert session.is_open
            here.engine.unhold()
            assert (await asyncio.to_thread(pending.result, DEADLINE_S)).tolist() == [2.0, 3.0]
            await draining
            with pytest.raises(fw.SessionClosed, match=r"^the server is shutting down$"):
                await asyncio.to_thread(x.numpy, DEADLINE_S)

    run(test())


@pytest.mark.parametrize("is_hurried", [False, True])
def test_work_that_is_not_finished_in_time_ends_with_its_session(*, is_hurried: bool) -> None:
    async def test() -> None:
        async with server() as here:
            session = await asyncio.to_thread(fw.connect, f"127.0.0.1:{here.port}", timeout=DEADLINE_S)
            x = await asyncio.to_thread(session.array, [1.0, 2.0])
            here.engine.hold()
            pending = await asyncio.to_thread((x + 1).future)
            await until_there_is_work(here)
            hurry = asyncio.Event()
            drain_s = DEADLINE_S if is_hurried else 0.3
            draining = asyncio.create_task(
                drain(here.engine, Publisher(here.engine, "1"), here.listeners.tell_draining, drain_s, hurry)
            )
            await until(lambda: session.is_draining)
            if is_hurried:
                hurry.set()
            await draining
            with pytest.raises(fw.SessionClosed, match=r"^the server is shutting down$"):
                await asyncio.to_thread(pending.result, DEADLINE_S)

    run(test())


def test_a_server_that_drains_says_so_to_all_who_ask() -> None:
    async def test() -> None:
        async with server() as here:
            stub = health_pb2_grpc.HealthStub(here.channel)
            publisher = await drained(here)
            for name in ("", "fusewire.v1.Fusewire"):
                answer = await stub.Check(health_pb2.HealthCheckRequest(service=name))
                assert answer.status == health_pb2.HealthCheckResponse.NOT_SERVING
            app = create_app(FixedSnapshots(publisher.snapshot), None, RememberingControl())
            answered = await asyncio.to_thread(Client(app).get, "/readyz")
            assert (answered.status_code, answered.text) == (503, "draining")

    run(test())
