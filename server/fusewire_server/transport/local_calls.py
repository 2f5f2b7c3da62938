"""Serves local calls: by the same methods as gRPC's, on an abstract Unix socket, which has no file.

Only processes in the network namespace of the server can reach such a socket. A caller has to show a secret: that of a
session, which its welcome held, or that of the server's front ends, which tell where their clients are.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import secrets
import socket
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

import grpc

from fusewire_protos.errors import CaseError
from fusewire_protos.local_calls.connection import LocalConnection
from fusewire_protos.local_calls.part_socket import Take
from fusewire_protos.local_calls.parts import (
    NAME_PREFIX,
    Metadata,
    Opening,
    PartKind,
    Place,
    Status,
    decode_opening,
    encode_metadata,
    encode_status,
)
from fusewire_server.transport.busy_polling import BusyPolling
from fusewire_server.transport.call import Method

log = logging.getLogger("fusewire.local")

OPENING_DEADLINE_S = 10.0
LOCAL_PEER = "unix:"
_SECRET_BYTES = 32
_NAME_BYTES = 16
_CLOSING_S = 10.0  # until the other side has taken the status of a call that is over
_REFUSED_CLOSING_S = 1.0  # or of one that has not begun
_STOPPING_S = 0.1
_MOST_NOT_ACCEPTED = 128  # a caller that comes then is refused by the system
_ACCEPT_AGAIN_S = 1.0
_END: Any = grpc.aio.EOF


class LocalCalls:
    """The listener for local calls. A message has at most `most_bytes`.

    The event loop polls for `busy_poll_s` after each short answer.
    """

    def __init__(self, most_bytes: int, busy_poll_s: float = 0.0) -> None:
        self.busy_poll_s = busy_poll_s
        self._busy_polling = BusyPolling(busy_poll_s)
        self._methods: Mapping[str, Method] = {}
        self._most_bytes = most_bytes
        self._key = secrets.token_bytes(_SECRET_BYTES)
        self._tasks: set[asyncio.Task[None]] = set()
        self._accepting: asyncio.Task[None] | None = None  # while it listens
        self._spare: socket.socket | None = None  # holds a descriptor for a caller that comes when there are no others
        self.name = NAME_PREFIX + secrets.token_hex(_NAME_BYTES)
        self.front_end_secret = secrets.token_bytes(_SECRET_BYTES)

    async def start(self, methods: Mapping[str, Method]) -> None:
        """Begins to listen. `methods` are those of the service by their names."""
        self._methods = methods
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.setblocking(False)
        listening.bind(f"\0{self.name}")
        listening.listen(_MOST_NOT_ACCEPTED)
        self._accepting = asyncio.create_task(self._accept(listening))

    def secret_of(self, session_id: bytes) -> bytes:
        """Returns the secret with which the client of a session makes local calls."""
        return session_id + hmac.digest(self._key, session_id, hashlib.sha256)

    async def stop(self, grace_s: float) -> None:
        """Listens no more. Ends the calls that go on after `grace_s`."""
        if self._accepting is not None:
            self._accepting.cancel()
            await asyncio.wait((self._accepting,))
            self._use_spare()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=grace_s)
        for _ in range(2):  # a call that is cancelled tells its status, but waits no second time
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=_STOPPING_S)

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        with listening:
            self._keep_spare()
            while True:
                try:
                    accepted, _ = await loop.sock_accept(listening)
                except OSError as error:  # as when there are no descriptors left
                    if self._use_spare():
                        continue
                    log.warning("no local call could be accepted: %s", error)
                    await asyncio.sleep(_ACCEPT_AGAIN_S)
                else:
                    self._begin(LocalConnection(accepted, self._most_bytes, is_admitted=False))
                    self._keep_spare()

    def _keep_spare(self) -> None:
        """Takes a descriptor in advance: a client that moves here leaves one of gRPC's, but only afterwards."""
        if self._spare is None:
            with suppress(OSError):
                self._spare = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)

    def _use_spare(self) -> bool:
        """Gives the spare descriptor up. Returns whether there was one."""
        spare, self._spare = self._spare, None
        if spare is not None:
            spare.close()
        return spare is not None

    def _begin(self, connection: LocalConnection) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(connection))
        self._tasks.add(task)
        task.add_done_callback(lambda task: self._ended(task, connection))

    def _ended(self, task: asyncio.Task[None], connection: LocalConnection) -> None:
        self._tasks.discard(task)
        connection.abort()

    async def _serve(self, connection: LocalConnection) -> None:
        """Serves one call. Whatever its method raises, ends it with a status."""
        status, closing_s = Status(grpc.StatusCode.UNAVAILABLE.value[0], "the server ends the call"), _REFUSED_CLOSING_S
        try:
            opening = await _opening(connection)
            if opening is None:
                return
            method = self._methods.get(opening.method)
            if not self._is_admitted(opening.secret):
                status = Status(grpc.StatusCode.PERMISSION_DENIED.value[0], "the secret is wrong")
            elif method is None:
                status = Status(grpc.StatusCode.UNIMPLEMENTED.value[0], f"there is no method {opening.method}")
            else:
                closing_s = _CLOSING_S
                connection.read_on()
                status = await _answer(method, LocalCall(connection, self._with_peer(opening), self._busy_polling))
        except CaseError as error:
            status = Status(grpc.StatusCode.INVALID_ARGUMENT.value[0], str(error))
        finally:
            await _close(connection, status, closing_s)

    def _with_peer(self, opening: Opening) -> Opening:
        """Front ends tell where their clients are. Other callers are here, whatever they say."""
        return opening if opening.secret == self.front_end_secret else opening._replace(peer=LOCAL_PEER)

    def _is_admitted(self, secret: bytes) -> bool:
        session_id = secret[:-_SECRET_BYTES]
        known = self.secret_of(session_id) if session_id else self.front_end_secret
        return hmac.compare_digest(secret, known)


class LocalCall:
    """The side of a local call that answers."""

    def __init__(self, connection: LocalConnection, opening: Opening, busy_polling: BusyPolling) -> None:
        self._connection = connection
        self._opening = opening
        self._busy_polling = busy_polling
        self._code = grpc.StatusCode.OK
        self._details = ""

    @property
    def status(self) -> Status:
        return Status(self._code.value[0], self._details)

    async def over(self) -> None:
        """Waits until the caller is gone."""
        await self._connection.over()

    def invocation_metadata(self) -> Metadata:
        return self._opening.metadata

    def peer(self) -> str:
        return self._opening.peer

    async def send_initial_metadata(self, initial_metadata: Metadata, /) -> None:
        await self._connection.send(PartKind.METADATA, encode_metadata(initial_metadata))

    async def read(self) -> Any:
        part = await self._connection.receive()
        if part is None or part.kind is not PartKind.MESSAGE:
            return _END
        return part.raw if part.placed is None else part.placed

    async def deliver(self, take: Take) -> bool:
        """Gives messages to `take` as they come, until it returns False. Returns False once no more come."""
        return await self._connection.deliver(take)

    async def write(self, *pieces: bytes | memoryview) -> None:
        """Sends a message, whose bytes are those of all pieces."""
        await self._connection.send(PartKind.MESSAGE, *pieces)

    def write_now(self, message: bytes) -> bool:
        """Sends a short message if that needs no waiting. Returns whether it did."""
        self._busy_polling.extend()
        return self._connection.send_now(PartKind.MESSAGE, message)

    @contextmanager
    def placing(self, place: Place) -> Iterator[None]:
        """Has long messages received where they belong. `read` returns their memory."""
        self._connection.place_by(place)
        try:
            yield
        finally:
            self._connection.place_no_more()

    async def abort(self, code: grpc.StatusCode, details: str = "", /) -> NoReturn:
        self._code, self._details = code, details
        raise grpc.aio.AbortError

    def set_code(self, code: grpc.StatusCode, /) -> None:
        self._code = code

    def set_details(self, details: str, /) -> None:
        self._details = details

    def details(self) -> str:
        return self._details


async def _opening(connection: LocalConnection) -> Opening | None:
    """Returns the first part of a call, or None if the connection is over before. Raises CaseError."""
    try:
        async with asyncio.timeout(OPENING_DEADLINE_S):
            part = await connection.receive()
    except TimeoutError:
        raise CaseError("out_of_turn", f"no call was opened within {OPENING_DEADLINE_S} s") from None
    if part is None:
        return None
    if part.kind is not PartKind.OPEN:
        raise CaseError("out_of_turn", "a call begins with its method")
    return decode_opening(part.raw)


async def _answer(method: Method, call: LocalCall) -> Status:
    """Runs a method until it returns or the caller is gone. Returns the status of the call.

    Does not raise what the method raises: this exception would refer to its own frames, with all that they hold.
    """
    answering = asyncio.ensure_future(method(_messages(call), call))
    leaving = asyncio.create_task(call.over())
    try:
        await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()
        if not answering.done():
            answering.cancel()
            await asyncio.wait((answering,))
    if answering.cancelled():
        return Status(grpc.StatusCode.CANCELLED.value[0], "the call was cancelled")
    failure = answering.exception()
    if failure is not None and not isinstance(failure, grpc.aio.AbortError):
        log.error("a local call failed", exc_info=failure)
        return Status(grpc.StatusCode.UNKNOWN.value[0], "the method failed")
    return call.status


async def _messages(call: LocalCall) -> AsyncGenerator[bytes, None]:
    while (message := await call.read()) is not _END:
        yield message


async def _close(connection: LocalConnection, status: Status, within_s: float) -> None:
    """Tells the status of a call, and waits until the caller has closed the connection or has had time for it.

    The caller closes first, because what it still sends to a closed socket would take the status from it.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            await connection.send(PartKind.STATUS, encode_status(status))
            while await connection.receive() is not None:
                pass
