"""A gRPC server that does no work: it echoes frames, and sends and receives large values. One process with asyncio.

Messages are raw bytes, so nothing is serialised. Messages to be sent are made at the start, so nothing is copied.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from multiprocessing.connection import Connection
from typing import Any

import grpc
import numpy as np

from loadtests.peers.event_loop import new_event_loop
from loadtests.peers.grpc_options import SERVER_OPTIONS

SERVICE = "loadtests.Bare"

Frames = AsyncIterator[bytes]
Context = Any  # grpc.aio.ServicerContext, used in ways that gRPC's type stubs do not allow


def serve(connection: Connection, source_bytes: int, chunk_bytes: int) -> None:
    """Sends the port that the server listens on; ends when the other side closes the pipe.

    The method `Source` returns `source_bytes` random bytes in messages of `chunk_bytes`.
    """
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(_serve(connection, chunks_of(source_bytes, chunk_bytes)))


def chunks_of(bulk_bytes: int, chunk_bytes: int) -> list[bytes]:
    """Returns `bulk_bytes` random bytes in messages of `chunk_bytes`. The last message may be shorter."""
    bulk = memoryview(np.random.default_rng(0).bytes(bulk_bytes))
    return [bytes(bulk[start : start + chunk_bytes]) for start in range(0, bulk_bytes, chunk_bytes)]


async def _serve(connection: Connection, source: list[bytes]) -> None:
    server = grpc.aio.server(options=SERVER_OPTIONS)
    server.add_generic_rpc_handlers((_Bare(source).handler(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    closed = asyncio.Event()
    asyncio.get_running_loop().add_reader(connection.fileno(), closed.set)
    connection.send(port)
    await closed.wait()
    await server.stop(grace=None)


class _Bare:
    def __init__(self, source: list[bytes]) -> None:
        self._source = source

    def handler(self) -> grpc.GenericRpcHandler:
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                "Echo": grpc.stream_stream_rpc_method_handler(self.echo),
                "Sink": grpc.stream_unary_rpc_method_handler(self.sink),
                "Source": grpc.unary_stream_rpc_method_handler(self.source),
            },
        )

    async def echo(self, frames: Frames, context: Context) -> None:
        async for frame in frames:
            await context.write(frame)

    async def sink(self, chunks: Frames, _context: Context) -> bytes:
        """Receives messages; returns the number of bytes in all of them."""
        taken_bytes = 0
        async for chunk in chunks:
            taken_bytes += len(chunk)
        return str(taken_bytes).encode()

    async def source(self, _request: bytes, context: Context) -> None:
        for chunk in self._source:
            await context.write(chunk)
