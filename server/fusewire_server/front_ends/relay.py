"""Passes each call of gRPC on to an engine as a local call.

If there are several engines, the first message of a session's stream tells which one. It looks at no other message.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing, suppress
from functools import partial
from random import Random

import grpc
from google.protobuf.message import DecodeError

from fusewire_protos.local_calls.connection import LocalConnection, connect
from fusewire_protos.local_calls.parts import Opening, PartKind, decode_metadata, decode_status, encode_opening
from fusewire_protos.upload_call import SESSION_HEADER
from fusewire_protos.v1 import fusewire_pb2 as pb
from fusewire_server.front_ends.placement import EngineAt, choose, short_digest, with_one_more
from fusewire_server.transport.call import Call, Messages, Method
from fusewire_server.transport.grpc_server import METHODS

_CODES = {code.value[0]: code for code in grpc.StatusCode}
_CONNECTED_WITHIN_S = 10.0
_CONNECT_AGAIN_S = 0.01
_HELLO_DEADLINE_S = 10.0
_MOST_HELLO_BYTES = 16 << 10
_MOST_PROGRAMS = 8  # of a client's last session


class Relay:
    """Calls go to `engines`, which may be replaced. There is one always."""

    def __init__(self, engines: Sequence[EngineAt], most_bytes: int) -> None:
        self.engines = list(engines)
        self._most_bytes = most_bytes
        self._random = Random()  # noqa: S311 - it guards nothing
        self._passing: set[asyncio.Task[None]] = set()

    @property
    def methods(self) -> Mapping[str, Method]:
        """The methods of the service."""
        return {name: partial(self._pass_on, name) for name in METHODS}

    async def _pass_on(self, method: str, messages: Messages, call: Call) -> None:
        """Passes a call on to the engine of its session, or of those for a new session to the one that is chosen."""
        first: bytes | None = None
        has_metadata = False
        if len(self.engines) == 1:
            engines = self.engines[:]
        elif method == "Session":
            # Before the first message, because gRPC cannot end a call whose metadata wait together with that message.
            await call.send_initial_metadata(())
            has_metadata = True
            messages = aiter(messages)
            first = await _first_of(messages)
            engines = self._in_order(*_wanted_by(first))
        else:
            session = dict(call.invocation_metadata() or ()).get(SESSION_HEADER)
            engines = self._in_order(_device_of(_bytes_of(session)))
        try:
            engine, connection = await self._connect(engines)
        except OSError as error:
            _end(call, grpc.StatusCode.UNAVAILABLE, f"the server's engine cannot be reached: {error.strerror}")
            return
        try:
            await connection.send(PartKind.OPEN, encode_opening(self._opening(method, call, engine)))
            if first is not None:
                await connection.send(PartKind.MESSAGE, first)
            self._pass_messages(messages, connection)
            await _pass_answers(connection, call, has_metadata=has_metadata)
        except (grpc.aio.InternalError, grpc.aio.UsageError):
            # The client has broken the call off while it was written to. gRPC logs any other exception as an error.
            raise asyncio.CancelledError from None
        finally:
            connection.abort()  # what is not sent yet has nobody who waits for it

    def _in_order(self, device: int | None, programs: Sequence[str] = ()) -> list[EngineAt]:
        """Returns the engines, first the one of this device, or without one the one that is chosen for a session.

        Any other says in words why it does not serve the call, or takes the session if the first one has just ended.
        """
        first = next((each for each in self.engines if each.device == device), None)
        if first is None:
            first = choose(self.engines, programs, self._random)
            if device is None:
                self.engines[self.engines.index(first)] = with_one_more(first)
        return [first, *[each for each in self.engines if each.device != first.device]]

    async def _connect(self, engines: Sequence[EngineAt]) -> tuple[EngineAt, LocalConnection]:
        """Connects to the first engine that there is. While too many calls wait to be accepted, tries again.

        Raises OSError.
        """
        loop = asyncio.get_running_loop()
        ends_at_s = loop.time() + _CONNECTED_WITHIN_S
        left = list(engines)
        while True:
            try:
                return left[0], await connect(left[0].name, self._most_bytes, own_user=True)
            except BlockingIOError:
                if loop.time() >= ends_at_s:
                    raise
            except ConnectionRefusedError:
                if len(left) == 1:
                    raise
                del left[0]
                continue
            await asyncio.sleep(_CONNECT_AGAIN_S)

    def _opening(self, method: str, call: Call, engine: EngineAt) -> Opening:
        metadata = [(key, value) for key, value in call.invocation_metadata() or () if isinstance(value, str)]
        return Opening(method, tuple(metadata), call.peer(), engine.secret)

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


async def _first_of(messages: Messages) -> bytes | None:
    """Returns the first message, or None if none comes in time; the engine then says so."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_HELLO_DEADLINE_S):
            return await anext(messages, None)
    return None


def _wanted_by(hello: bytes | None) -> tuple[int | None, list[str]]:
    """Returns the device that a session is on or asks for, and the programs of its client. The engine checks both."""
    if hello is None or len(hello) > _MOST_HELLO_BYTES:
        return None, []
    try:
        greeting = pb.ClientFrame.FromString(hello).hello
    except DecodeError:
        return None, []
    programs = [short_digest(each) for each in greeting.programs[:_MOST_PROGRAMS]]
    if greeting.session_id:
        return _device_of(greeting.session_id), programs
    return greeting.device if greeting.HasField("device") else None, programs


def _device_of(session_id: bytes) -> int:
    """Returns the device of a session, which the last byte of its id tells; -1 if there is no id."""
    return session_id[-1] if session_id else -1


def _bytes_of(digits: object) -> bytes:
    with suppress(ValueError):
        return bytes.fromhex(str(digits))
    return b""


async def _pass_answers(connection: LocalConnection, call: Call, *, has_metadata: bool) -> None:
    """Passes on what the engine answers, until the status of the call, with which this call ends too.

    `has_metadata` says that the client has got metadata, and gets no others.
    """
    while (part := await connection.receive()) is not None:
        if part.kind is PartKind.MESSAGE:
            await call.write(part.raw)
        elif part.kind is PartKind.METADATA and not has_metadata:
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
