"""One connection of a Unix socket, which carries one local call. Both sides use this class, each in its event loop."""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import cast

from fusewire_protos.errors import CaseError
from fusewire_protos.local_calls.parts import Part, PartKind, PartReader, head_of

PING_EVERY_S = 5.0
MOST_SILENT_LOOKS = 2  # looks, one each `PING_EVERY_S`, that find nothing heard since the last one
_MOST_UNREAD_BYTES = 1 << 20  # after so many bytes that nobody has taken, the other side has to wait
_PART_BYTES = 128  # what a part takes beside its bytes
_MOST_PARTS_AT_ONCE = 1024  # found in one step of the event loop, in which nothing else is done
_LONG_BYTES = 16 << 10  # a part of so many bytes is not copied behind its head
SILENT = "ping timeout"  # gRPC's words


async def connect(name: str, most_bytes: int) -> LocalConnection:
    """Connects to the abstract socket of this name. Raises OSError if nobody there takes the connection now."""
    loop = asyncio.get_running_loop()
    connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connected.setblocking(False)
        connected.connect(f"\0{name}")  # at once: uvloop refuses such names
        _, connection = await loop.create_unix_connection(lambda: LocalConnection(most_bytes), sock=connected)
    except BaseException:
        connected.close()
        raise
    return connection


class LocalConnection(asyncio.Protocol):
    """Sends and receives parts. A part that comes may have at most `most_bytes`.

    With `is_admitted=False` it takes one part, and reads on only after `admit`: a stranger fills no more memory.
    `on_made` is called once it is there.
    The connection is over once the other side has closed it or fallen silent: then `receive` returns None after the
    last part, and what is sent is dropped. `reason` tells why.
    """

    def __init__(
        self,
        most_bytes: int,
        *,
        is_admitted: bool = True,
        on_made: Callable[[LocalConnection], None] = lambda _connection: None,
    ) -> None:
        self._reader = PartReader(most_bytes)
        self._is_admitted = is_admitted
        self._on_made = on_made
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._parts: deque[Part] = deque()
        self._unread_bytes = 0
        self._may_hold_parts = False  # whether the reader may hold whole parts
        self._is_reading_paused = False
        self._is_reading_on = False  # whether `_read_on` is about to run
        self._arrival: asyncio.Future[None] | None = None  # `receive` waits for it
        self._room = asyncio.Event()  # `send` waits for it
        self._room.set()
        self._has_heard = True  # since the last look
        self._silent_looks = 0
        self._is_over = asyncio.Event()
        self.reason = "the connection was closed"

    # ---- for both sides ----

    async def send(self, kind: PartKind, raw: bytes | memoryview = b"") -> None:
        """Sends a part. Waits while the other side does not read."""
        while not self._room.is_set():
            await self._room.wait()
        if self._transport.is_closing():
            await asyncio.sleep(0)  # whoever sends in a loop is told by others that it is over
            return
        head = head_of(kind, len(raw))
        if len(raw) < _LONG_BYTES:
            self._transport.write(head + raw)
        else:
            self._transport.writelines((head, raw))

    async def receive(self) -> Part | None:
        """Returns the next part, or None if the connection is over. Only one task may wait here."""
        if not self._parts:
            if self._is_over.is_set():
                return None
            self._arrival = self._loop.create_future()
            await self._arrival
            if not self._parts:
                return None
        part = self._parts.popleft()
        self._unread_bytes -= len(part.raw) + _PART_BYTES
        self._read_on_soon()
        return part

    def admit(self) -> None:
        """Reads on after the first part."""
        self._is_admitted = True
        self._read_on_soon()

    async def over(self) -> None:
        """Waits until the connection is over."""
        await self._is_over.wait()

    def close(self) -> None:
        """Closes the connection after what was sent. Reads no more, and gives up a side that does not read either."""
        self._transport.close()

    def abort(self) -> None:
        """Closes the connection at once. What the other side has not taken is lost."""
        if not self._is_over.is_set():
            self._transport.abort()

    # ---- asyncio ----

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is not of this class
        self._look_later()
        self._on_made(self)

    def data_received(self, data: bytes) -> None:
        self._has_heard = True
        self._find_parts(data)

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    def connection_lost(self, error: Exception | None) -> None:
        if error is not None:
            self.reason = str(error)
        self._is_over.set()
        self._timer.cancel()
        _settle(self._arrival)
        self._room.set()

    def _find_parts(self, data: bytes) -> None:
        most_parts = _MOST_PARTS_AT_ONCE if self._is_admitted else 1
        try:
            parts = self._reader.feed(data, most_parts)
        except CaseError as error:
            self._break(str(error))
            return
        for part in parts:
            if part.kind is not PartKind.PING or not self._is_admitted:
                self._parts.append(part)
                self._unread_bytes += len(part.raw) + _PART_BYTES
        if self._parts:
            _settle(self._arrival)
        self._may_hold_parts = len(parts) == most_parts
        if (self._may_hold_parts or self._is_full) and not self._is_reading_paused:
            self._is_reading_paused = True
            self._transport.pause_reading()
        self._read_on_soon()

    @property
    def _is_full(self) -> bool:
        return self._unread_bytes > _MOST_UNREAD_BYTES

    def _read_on_soon(self) -> None:
        if self._is_reading_paused and self._is_admitted and not self._is_full and not self._is_reading_on:
            self._is_reading_on = True
            self._loop.call_soon(self._read_on)

    def _read_on(self) -> None:
        """Finds the parts that the reader holds, and then has the socket read again."""
        self._is_reading_on = False
        if self._transport.is_closing():
            return
        if self._may_hold_parts:
            self._find_parts(b"")
        else:
            self._is_reading_paused = False
            self._transport.resume_reading()

    def _look_later(self) -> None:
        self._timer = self._loop.call_later(PING_EVERY_S, self._look)

    def _look(self) -> None:
        """Pings the other side, and ends the connection if it has been silent for some looks.

        Counts looks and not time, because this event loop may itself be late. Who has not taken what has come does not
        hear more.
        """
        is_silent = not self._has_heard and (not self._is_reading_paused or self._transport.is_closing())
        self._silent_looks = self._silent_looks + 1 if is_silent else 0
        self._has_heard = False
        if self._silent_looks >= MOST_SILENT_LOOKS:
            self._break(SILENT)
            return
        if self._room.is_set():
            self._transport.write(head_of(PartKind.PING, 0))
        self._look_later()

    def _break(self, reason: str) -> None:
        self.reason = reason
        self._transport.abort()


def _settle(future: asyncio.Future[None] | None) -> None:
    if future is not None:
        with suppress(asyncio.InvalidStateError):  # it was cancelled
            future.set_result(None)
