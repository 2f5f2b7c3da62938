"""A gRPC server that does no work: it echoes frames, and takes and gives bytes. One process, asyncio.

`Echo` answers from the event loop. `EchoThroughThread` hands each frame to another thread and takes it back, as a
server must whose device is driven by a thread of its own. Messages are raw bytes: nothing is serialised.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncIterator, Callable
from multiprocessing.connection import Connection
from typing import Any

import grpc
import numpy as np

from loadtests.peers.loops import new_loop

SERVICE = "loadtests.Bare"
UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]

Frames = AsyncIterator[bytes]
Context = Any  # grpc.aio.ServicerContext, which the handlers use as the stubs do not describe it
GiveBack = Callable[[bytes], None]


def serve(connection: Connection, source_bytes: int) -> None:
    """Sends the port that it listens on; ends when the other side closes the pipe.

    `source_bytes` random bytes are what `Source` has to give.
    """
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(_serve(connection, source_bytes))


async def _serve(connection: Connection, source_bytes: int) -> None:
    server = grpc.aio.server(options=UNLIMITED)
    server.add_generic_rpc_handlers((_Bare(source_bytes).handler(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    closed = asyncio.Event()
    asyncio.get_running_loop().add_reader(connection.fileno(), closed.set)
    connection.send(port)
    await closed.wait()
    await server.stop(grace=None)


class _Bare:
    def __init__(self, source_bytes: int) -> None:
        self._source = memoryview(np.random.default_rng(0).bytes(source_bytes))
        self._frames: queue.SimpleQueue[tuple[bytes, GiveBack]] = queue.SimpleQueue()
        threading.Thread(target=self._hand_back, daemon=True).start()

    def handler(self) -> grpc.GenericRpcHandler:
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                "Echo": grpc.stream_stream_rpc_method_handler(self.echo),
                "EchoThroughThread": grpc.stream_stream_rpc_method_handler(self.echo_through_thread),
                "Sink": grpc.stream_unary_rpc_method_handler(self.sink),
                "Source": grpc.unary_stream_rpc_method_handler(self.source),
            },
        )

    async def echo(self, frames: Frames, context: Context) -> None:
        async for frame in frames:
            await context.write(frame)

    async def echo_through_thread(self, frames: Frames, context: Context) -> None:
        loop = asyncio.get_running_loop()
        back: asyncio.Queue[bytes] = asyncio.Queue()

        def give_back(frame: bytes) -> None:
            loop.call_soon_threadsafe(back.put_nowait, frame)

        async def write() -> None:
            while True:
                await context.write(await back.get())

        writer = asyncio.create_task(write())
        async for frame in frames:
            self._frames.put((frame, give_back))
        writer.cancel()

    async def sink(self, chunks: Frames, _context: Context) -> bytes:
        """How many bytes came."""
        taken_bytes = 0
        async for chunk in chunks:
            taken_bytes += len(chunk)
        return str(taken_bytes).encode()

    async def source(self, request: bytes, context: Context) -> None:
        """All bytes there are, in chunks as long as the request says."""
        chunk_bytes = int(request)
        for start in range(0, len(self._source), chunk_bytes):
            await context.write(bytes(self._source[start : start + chunk_bytes]))

    def _hand_back(self) -> None:
        while True:
            frame, give_back = self._frames.get()
            give_back(frame)
