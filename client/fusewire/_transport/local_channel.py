"""Makes local calls: an interface like that of a gRPC channel, over Unix sockets. Only the I/O thread uses it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Generator
from typing import Any, NamedTuple

import grpc
import grpc.aio

from fusewire_protos.errors import CaseError
from fusewire_protos.local_calls.connection import LocalConnection, connect
from fusewire_protos.local_calls.parts import (
    Metadata,
    Opening,
    Part,
    PartKind,
    Place,
    Status,
    decode_metadata,
    decode_status,
    encode_opening,
)

_END: Any = grpc.aio.EOF
_CODES = {code.value[0]: code for code in grpc.StatusCode}
_GONE = grpc.StatusCode.UNAVAILABLE.value[0]


class LocalOffer(NamedTuple):
    """What a server's welcome tells a client on its machine. A message of the server has at most `most_bytes`.

    A thread that waits for a value polls for `busy_poll_us` before it sleeps.
    """

    name: str
    secret: bytes
    most_bytes: int
    busy_poll_us: int = 0


class LocalChannel:
    """Makes calls to the server that made the offer. A call is a connection of its own."""

    def __init__(self, offer: LocalOffer) -> None:
        self._offer = offer
        self._calls: set[LocalCall] = set()  # that have not ended

    def stream_stream(self, method: str) -> Callable[..., LocalCall]:
        """Returns a function that begins a call of a method."""

        def begin(*, metadata: Metadata = ()) -> LocalCall:
            name = method.rpartition("/")[2]
            call = LocalCall(self._connect, Opening(name, metadata, "", self._offer.secret), self._calls.discard)
            self._calls.add(call)
            return call

        return begin

    stream_unary = stream_stream

    def unary_stream(self, method: str) -> Callable[..., LocalCall]:
        """Returns a function that begins a call of a method that takes one message."""
        begin_stream = self.stream_stream(method)

        def begin(request: bytes, *, metadata: Metadata = ()) -> LocalCall:
            call = begin_stream(metadata=metadata)
            call.send_only(request)
            return call

        return begin

    async def close(self) -> None:
        """Ends all calls."""
        for call in [*self._calls]:
            call.cancel()

    async def _connect(self) -> LocalConnection:
        return await connect(self._offer.name, self._offer.most_bytes)


def _look_at(opened: asyncio.Future[None]) -> None:
    """Takes note of a failure, which the status of the call tells: asyncio would log one that nobody looks at."""
    if not opened.cancelled():
        opened.exception()


class LocalCall:
    """One call. Awaiting it waits for its end, and returns its last message; raises AioRpcError as gRPC's calls do.

    `on_end` is called with it at the end.
    """

    def __init__(
        self, connect: Callable[[], Any], opening: Opening, on_end: Callable[[LocalCall], object] = lambda _call: None
    ) -> None:
        self._opened = asyncio.ensure_future(self._open(connect, opening))
        self._opened.add_done_callback(_look_at)
        self._on_end = on_end
        self._connection: LocalConnection
        self._only: bytes | None = None  # the message to be sent with the opening
        self._place: Place | None = None
        self._messages: deque[bytes | memoryview] = deque()
        self._metadata: Metadata | None = None
        self._status: Status | None = None
        self._receiving = asyncio.Lock()

    def send_only(self, request: bytes) -> None:
        """Sends one message and no more. Called right after the call is made."""
        self._only = request

    def place_by(self, place: Place) -> None:
        """Has long messages received where they belong, until the call ends: `read` returns their memory."""
        self._place = place

    async def write(self, *pieces: bytes | memoryview) -> None:
        """Sends a message, whose bytes are those of all pieces. Waits while the server does not read."""
        await self._send(PartKind.MESSAGE, *pieces)

    async def done_writing(self) -> None:
        """Tells the server that no more messages will come."""
        await self._send(PartKind.END)

    async def read(self) -> Any:
        """Returns the next message as bytes, or `grpc.aio.EOF` at the end of a call that succeeded."""
        while not self._messages:
            if self._status is not None:
                self._check()
                return _END
            await self._receive()
        return self._messages.popleft()

    async def initial_metadata(self) -> dict[str, str]:
        """Returns the server's metadata."""
        while self._metadata is None and self._status is None:
            await self._receive()
        return dict(self._metadata or ())

    async def code(self) -> grpc.StatusCode:
        """Returns the code of the status, once the call has ended."""
        return _CODES.get((await self._end()).code, grpc.StatusCode.UNKNOWN)

    async def details(self) -> str:
        """Returns the details of the status, once the call has ended."""
        return (await self._end()).details

    def cancel(self) -> None:
        """Ends the call at once."""
        self._opened.cancel()
        if self._status is None:
            self._ended(Status(grpc.StatusCode.CANCELLED.value[0], "the call was cancelled"))
        if self._opened.done() and not self._opened.cancelled() and self._opened.exception() is None:
            self._connection.place_no_more()
            self._connection.close()

    def __await__(self) -> Generator[Any, None, bytes]:
        return self._outcome().__await__()

    async def _outcome(self) -> bytes:
        await self._end()
        self._check()
        return bytes(self._messages[-1]) if self._messages else b""

    async def _open(self, connect: Callable[[], Any], opening: Opening) -> None:
        try:
            self._connection = await connect()
        except OSError as error:
            self._ended(Status(_GONE, f"the server's local socket: {error.strerror}"))
            raise
        if self._place is not None:
            self._connection.place_by(self._place)
        await self._connection.send(PartKind.OPEN, encode_opening(opening))
        if self._only is not None:
            await self._connection.send(PartKind.MESSAGE, self._only)
            await self._connection.send(PartKind.END)

    async def _send(self, kind: PartKind, *pieces: bytes | memoryview) -> None:
        if not self._opened.done():
            await asyncio.wait((self._opened,))
        if self._status is not None:
            raise asyncio.InvalidStateError("the call has ended")
        await self._connection.send(kind, *pieces)

    async def _receive(self) -> None:
        """Takes one part, or waits until another task has taken one."""
        if self._receiving.locked():
            async with self._receiving:
                return
        async with self._receiving:
            if not self._opened.done():
                await asyncio.wait((self._opened,))
            if self._status is None:
                self._take(await self._connection.receive())

    def _take(self, part: Part | None) -> None:
        try:
            if part is None:
                self._ended(self._status or Status(_GONE, self._connection.reason))
            elif part.kind is PartKind.MESSAGE:
                self._messages.append(part.raw if part.placed is None else part.placed)
            elif part.kind is PartKind.METADATA:
                self._metadata = decode_metadata(part.raw)
            elif part.kind is PartKind.STATUS:
                self._ended(decode_status(part.raw))
                self._connection.close()
        except CaseError as error:
            self._ended(Status(grpc.StatusCode.INTERNAL.value[0], str(error)))

    def _ended(self, status: Status) -> None:
        self._status = status
        self._place = None
        self._on_end(self)

    async def _end(self) -> Status:
        while self._status is None:
            await self._receive()
        return self._status

    def _check(self) -> None:
        """Raises AioRpcError unless the call has succeeded."""
        assert self._status is not None, "the call has ended"
        code = _CODES.get(self._status.code, grpc.StatusCode.UNKNOWN)
        if code is not grpc.StatusCode.OK:
            nothing = grpc.aio.Metadata()
            raise grpc.aio.AioRpcError(code, nothing, nothing, self._status.details)
