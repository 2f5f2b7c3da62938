"""What a server says of itself to whoever asks over gRPC: health and reflection."""

from __future__ import annotations

import asyncio

from grpc_health.v1 import health_pb2, health_pb2_grpc

from fusewire_server.app import drain
from fusewire_server.inspect.api import create_app
from fusewire_server.publisher import Publisher
from tests.server.inspect.examples import Client, RememberingControl
from tests.server.wire import server, services
from tests.server.world import run


def test_health_and_reflection_answer() -> None:
    async def test() -> None:
        async with server() as here:
            stub = health_pb2_grpc.HealthStub(here.channel)
            for name in ("", "fusewire.v1.Fusewire"):
                answer = await stub.Check(health_pb2.HealthCheckRequest(service=name))
                assert answer.status == health_pb2.HealthCheckResponse.SERVING
            assert "fusewire.v1.Fusewire" in await services(here.channel)

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
            app = create_app(lambda: publisher.snapshot, None, RememberingControl())
            answered = await asyncio.to_thread(Client(app).get, "/readyz")
            assert (answered.status_code, answered.text) == (503, "draining")

    run(test())
