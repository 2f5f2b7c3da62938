"""Passes each call of gRPC on to the engine as a local call, and looks at no message."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from functools import partial

import grpc

from fusewire_protos.local_calls.connection import LocalConnection, connect
from fusewire_protos.local_calls.parts import Opening, PartKind, decode_metadata, decode_status, encode_opening
from fusewire_server.transport.call import Call, Messages, Method
from fusewire_server.transport.grpc_server import METHODS

_CODES = {code.value[0]: code for code in grpc.StatusCode}
_CONNECTED_WITHIN_S = 10.0
_CONNECT_AGAIN_S = 0.01


class Relay:
    """Calls go to the abstract socket `name`, with the secret of the server's front ends."""

    def __init__(self, name: str, secret: bytes, most_bytes: int) -> None:
        self._name = name
        self._secret = secret
        self._most_bytes = most_bytes
        self._passing: set[asyncio.Task[None]] = set()

    @property
    def methods(self) -> Mapping[str, Method]:
        """The methods of the service."""
        return {name: partial(self._pass_on, name) for name in METHODS}

    async def _pass_on(self, method: str, messages: Messages, call: Call) -> None:
        try:
            connection = await self._connect()
        except OSError as error:
            _end(call, grpc.StatusCode.UNAVAILABLE, f"the server's engine cannot be reached: {error.strerror}")
            return
        try:
            await connection.send(PartKind.OPEN, encode_opening(self._opening(method, call)))
            self._pass_messages(messages, connection)
            await _pass_answers(connection, call)
        except (grpc.aio.InternalError, grpc.aio.UsageError):
            # The client has broken the call off while it was written to. gRPC logs any other exception as an error.
            raise asyncio.CancelledError from None
        finally:
            connection.abort()  # what is not sent yet has nobody who waits for it

    async def _connect(self) -> LocalConnection:
        """Connects to the engine. While too many calls wait to be accepted, tries again. Raises OSError."""
        loop = asyncio.get_running_loop()
        ends_at_s = loop.time() + _CONNECTED_WITHIN_S
        while True:
            try:
                return await connect(self._name, self._most_bytes)
            except BlockingIOError:
                if loop.time() >= ends_at_s:
                    raise
            await asyncio.sleep(_CONNECT_AGAIN_S)

    def _opening(self, method: str, call: Call) -> Opening:
        metadata = [(key, value) for key, value in call.invocation_metadata() or () if isinstance(value, str)]
        return Opening(method, tuple(metadata), call.peer(), self._secret)

    def _pass_messages(self, messages: Messages, connection: LocalConnection) -> None:
        """Passes the client's messages on in a task of its own, which ends with the call.

        It is not cancelled: gRPC would never free the message that a cancelled read was to bring.
        """
        task = asyncio.create_task(_pass_all(messages, connection))
        self._passing.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._passing.discard(task)
        if not task.cancelled():
            task.exception()  # the call has broken off, which the other task notices too


async def _pass_all(messages: Messages, connection: LocalConnection) -> None:
    # Closed, because gRPC's iterator keeps the message that it gave last, and refers to itself.
    async with aclosing(aiter(messages)) as read:  # type: ignore[type-var]  # gRPC's iterator is a generator
        async for message in read:
            await connection.send(PartKind.MESSAGE, message)
    await connection.send(PartKind.END)


async def _pass_answers(connection: LocalConnection, call: Call) -> None:
    """Passes on what the engine answers, until the status of the call, with which this call ends too."""
    while (part := await connection.receive()) is not None:
        if part.kind is PartKind.MESSAGE:
            await call.write(part.raw)
        elif part.kind is PartKind.METADATA:
            await call.send_initial_metadata(decode_metadata(part.raw))
        elif part.kind is PartKind.STATUS:
            code, details = decode_status(part.raw)
            _end(call, _CODES.get(code, grpc.StatusCode.UNKNOWN), details)
            return
    _end(call, grpc.StatusCode.UNAVAILABLE, f"the server's engine has gone: {connection.reason}")


def _end(call: Call, code: grpc.StatusCode, details: str) -> None:
    """Sets the status of a call that is about to end.

    It is not aborted, because gRPC would keep the exception in the call, and all that its frames hold.
    """
    call.set_code(code)
    call.set_details(details)
