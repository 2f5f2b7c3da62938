"""A relay in one process: gRPC on one side, and on the other local calls of methods that a test has made."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc

from fusewire_protos.address import Address
from fusewire_server.access.interceptor import Access
from fusewire_server.config.config import Listen
from fusewire_server.front_ends.placement import EngineAt
from fusewire_server.front_ends.relay import Relay
from fusewire_server.transport.call import Call, Messages, Method
from fusewire_server.transport.grpc_server import METHODS, longest_message, start_grpc
from fusewire_server.transport.local_calls import LocalCalls
from tests.server.wire import SERVICE
from tests.server.world import DEADLINE_S, until

MESSAGE_BYTES = 1 << 20
LONGEST = longest_message(MESSAGE_BYTES)

END = grpc.aio.EOF


@dataclass
class Relayed:
    """A relay, who calls it, and the engine's side."""

    relay: Relay
    channel: Any  # whose serialisers the stubs of gRPC do not let be left out
    local: LocalCalls | None
    failures: list[str] = field(default_factory=list)

    def call(self, name: str = "Session", metadata: Any = ()) -> Any:
        return self.channel.stream_stream(SERVICE + name)(metadata=metadata)

    async def until_nothing_is_left(self) -> None:
        """Neither side has a call or a task of one."""
        await until(lambda: not self.relay._passing)
        if self.local is not None:
            local = self.local
            await until(lambda: not local._tasks)


@asynccontextmanager
async def serving(name: str, secret: bytes, local: LocalCalls | None = None) -> AsyncIterator[Relayed]:
    relay = Relay([EngineAt(0, name, secret)], LONGEST)
    listen = Listen(grpc=Address("127.0.0.1", 0))
    access, quiet = Access(None), lambda: None
    started = await start_grpc(listen, relay.methods, access, None, message_bytes=MESSAGE_BYTES, count_refusal=quiet)
    options = (("grpc.max_receive_message_length", -1), ("grpc.use_local_subchannel_pool", 1))
    try:
        async with asyncio.timeout(DEADLINE_S):
            async with grpc.aio.insecure_channel(f"127.0.0.1:{started.port}", options=options) as channel:
                yield Relayed(relay, channel, local)
    finally:
        await started.server.stop(None)
        await until(lambda: not relay._passing)


@asynccontextmanager
async def relayed(method: Method) -> AsyncIterator[Relayed]:
    """A relay to an engine all of whose methods are this one. In the end no call is left."""
    local = LocalCalls(LONGEST)
    await local.start(dict.fromkeys(METHODS, method))
    try:
        async with serving(local.name, local.front_end_secret, local) as here:
            yield here
            await here.until_nothing_is_left()
    finally:
        await local.stop(0.0)


async def echo(messages: Messages, call: Call) -> None:
    async for message in messages:
        await call.write(message)


async def read_all(call: Any) -> list[bytes]:
    messages = []
    while (message := await call.read()) is not END:
        messages.append(message)
    return messages


async def status_of(call: Any) -> tuple[grpc.StatusCode, str]:
    return await call.code(), await call.details()
