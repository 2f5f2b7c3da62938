"""What a server says of itself to whoever asks over gRPC: health and reflection."""

from __future__ import annotations

import asyncio

import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

import fusewire as fw
from fusewire_server.app import drain
from fusewire_server.inspect.publisher import Publisher
from fusewire_server.inspect.routes import create_app
from fusewire_server.sessions.session import SessionState
from tests.server.inspect.examples import Client, FixedSnapshots, RememberingControl
from tests.server.wire import server, services
from tests.server.world import DEADLINE_S, run, until


def test_health_and_reflection_answer() -> None:
    async def test() -> None:
        async with server() as here:
            stub = health_pb2_grpc.HealthStub(here.channel)
            for name in ("", "fusewire.v1.Fusewire"):
                answer = await stub.Check(health_pb2.HealthCheckRequest(service=name))
                assert answer.status == health_pb2.HealthCheckResponse.SERVING
            assert "fusewire.v1.Fusewire" in await services(here.channel)

    run(test())


def test_a_server_that_drains_ends_each_session_in_words_as_soon_as_it_has_a_stream() -> None:
    async def test() -> None:
        async with server() as here:
            here_now, away = [await here.peer() for _ in range(2)]
            session = here.engine.sessions[away.session_id]
            away.call.cancel()
            await until(lambda: session.state is SessionState.DETACHED)
            await drain(here.engine, Publisher(here.engine, "1"), here.status)
            assert await here_now.goodbye() == "draining"
            await away.resume()
            assert await away.goodbye() == "draining"
            assert here_now.farewell == away.farewell == "the server is shutting down"
            assert not here.engine.sessions

    run(test())


def test_whoever_reads_from_a_server_that_drains_is_told_so() -> None:
    async def test() -> None:
        async with server() as here:
            session = await asyncio.to_thread(fw.connect, f"127.0.0.1:{here.port}", timeout=DEADLINE_S)
            x = await asyncio.to_thread(session.array, [1.0, 2.0])
            here.engine.hold()
            pending = await asyncio.to_thread((x + 1).future)
            await drain(here.engine, Publisher(here.engine, "1"), here.status)
            for read in (pending.result, x.numpy):
                with pytest.raises(fw.SessionClosed, match=r"^the server is shutting down$"):
                    await asyncio.to_thread(read, DEADLINE_S)

    run(test())


def test_a_server_that_drains_says_so_to_all_who_ask() -> None:
    async def test() -> None:
        async with server() as here:
            publisher = Publisher(here.engine, "1")
            stub = health_pb2_grpc.HealthStub(here.channel)
            await drain(here.engine, publisher, here.status)
            for name in ("", "fusewire.v1.Fusewire"):
                answer = await stub.Check(health_pb2.HealthCheckRequest(service=name))
                assert answer.status == health_pb2.HealthCheckResponse.NOT_SERVING
            app = create_app(FixedSnapshots(publisher.snapshot), None, RememberingControl())
            answered = await asyncio.to_thread(Client(app).get, "/readyz")
            assert (answered.status_code, answered.text) == (503, "draining")

    run(test())
