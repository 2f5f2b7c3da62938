"""One connection of a Unix socket, which carries one local call. Both sides use this class, each in its event loop."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import struct
from collections import deque
from contextlib import suppress

from fusewire_protos.errors import CaseError
from fusewire_protos.local_calls.parts import Part, PartKind, PartReader, Place, head_of

PING_EVERY_S = 5.0
MOST_SILENT_LOOKS = 2  # looks, one each `PING_EVERY_S`, that find nothing heard since the last one
_MOST_UNREAD_BYTES = 1 << 20  # after so many bytes that nobody has taken, the other side has to wait
_PART_BYTES = 128  # what a part takes beside its bytes
_MOST_PARTS_AT_ONCE = 1024  # found in one step of the event loop, in which nothing else is done
_RECEIVED_BYTES = 64 << 10  # at once, but for
_LONG_BYTES = 1 << 20  # of a long message
_SOCKET_BYTES = 1 << 20  # that the system may hold of parts of at least
_BULK_BYTES = 512 << 10
_CREDENTIALS = struct.Struct("3i")  # process, user, group
SILENT = "ping timeout"  # gRPC's words


async def connect(name: str, most_bytes: int, *, own_user: bool = False) -> LocalConnection:
    """Connects to the abstract socket of this name. Raises OSError if nobody there takes the connection now.

    With `own_user` only a process of this process's user may be there: another one may take the name of one that ended.
    """
    connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connected.setblocking(False)
        connected.connect(f"\0{name}")
        if own_user and _user_of(connected) != os.geteuid():
            raise ConnectionRefusedError(errno.ECONNREFUSED, "another user listens there")
    except BaseException:
        connected.close()
        raise
    return LocalConnection(connected, most_bytes)


class LocalConnection:
    """Sends and receives parts by a connected socket, which it owns. A part that comes may have at most `most_bytes`.

    With `is_admitted=False` it takes one part, and reads on only after `admit`: a stranger fills no more memory.
    The connection is over once the other side has closed it or fallen silent: then `receive` returns None after the
    last part, and what is sent is dropped. `reason` tells why.

    It uses the socket itself, because the transports of asyncio copy what they receive, and what they cannot send.
    """

    def __init__(self, connected: socket.socket, most_bytes: int, *, is_admitted: bool = True) -> None:
        connected.setblocking(False)
        self._socket = connected
        self._reader = PartReader(most_bytes)
        self._is_admitted = is_admitted
        self._loop = asyncio.get_running_loop()
        self._parts: deque[Part] = deque()
        self._unread_bytes = 0
        self._may_hold_parts = False  # whether the reader may hold whole parts
        self._is_reading_paused = False
        self._is_reading_on = False  # whether `_read_on` is about to run
        self._arrival: asyncio.Future[None] | None = None  # `receive` waits for it
        self._unsent: deque[memoryview] = deque()
        self._has_large_buffer = False
        self._room = asyncio.Event()  # set while nothing is unsent
        self._room.set()
        self._has_heard = True  # since the last look
        self._silent_looks = 0
        self._is_closing = False
        self._is_over = asyncio.Event()
        self.reason = "the connection was closed"
        self._look_later()
        self._loop.add_reader(self._socket, self._on_readable)

    # ---- for both sides ----

    async def send(self, kind: PartKind, *pieces: bytes | memoryview) -> None:
        """Sends a part, whose bytes are those of all pieces. Waits while the other side does not read.

        Returns once the system has the bytes of a long part.
        """
        while not self._room.is_set():
            await self._room.wait()
        if self._is_closing:
            await asyncio.sleep(0)  # whoever sends in a loop is told by others that it is over
            return
        length = sum(map(len, pieces))
        self._unsent += map(memoryview, (head_of(kind, length), *pieces))
        if length < _RECEIVED_BYTES:
            self._flush()
            return
        if length >= _BULK_BYTES and not self._has_large_buffer:
            self._has_large_buffer = True
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BYTES)
        self._flush()
        try:
            await self._room.wait()
        except asyncio.CancelledError:
            self._unsent = deque([memoryview(bytes(piece)) for piece in self._unsent])  # so that other parts may follow
            raise

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

    def place_by(self, place: Place) -> None:
        """Has long messages received where they belong, from now on until `place_no_more`."""
        self._reader.place = place

    def place_no_more(self) -> None:
        """Writes no more to memory that `place` gave."""
        self._reader.place_no_more()

    async def over(self) -> None:
        """Waits until the connection is over."""
        await self._is_over.wait()

    def close(self) -> None:
        """Closes the connection after what was sent. Reads no more, and gives up a side that does not read either."""
        if self._is_closing:
            return
        self._is_closing = True
        self._pause_reading()
        if not self._unsent:
            self._end()

    def abort(self) -> None:
        """Closes the connection at once. What the other side has not taken is lost."""
        self._end()

    # ---- the socket ----

    def _on_readable(self) -> None:
        rest, data = self._reader.rest, b""
        try:
            if rest is None:
                data = self._socket.recv(_RECEIVED_BYTES)
                count = len(data)
            else:
                count = self._socket.recv_into(rest[:_LONG_BYTES])
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._end(error)
            return
        if not count:
            self._end()
            return
        self._has_heard = True
        if rest is None:
            self._find_parts(data)
        else:
            self._take(self._reader.filled(count))

    def _flush(self) -> None:
        """Sends as much as the socket takes, and the rest once it takes more."""
        had_room = self._room.is_set()
        try:
            sent = self._socket.sendmsg(self._unsent, (), socket.MSG_NOSIGNAL)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError as error:
            self._end(error)
            return
        while self._unsent and sent >= len(self._unsent[0]):
            sent -= len(self._unsent.popleft())
        if self._unsent:
            self._unsent[0] = self._unsent[0][sent:]
            if had_room:
                self._room.clear()
                self._loop.add_writer(self._socket, self._flush)
            return
        if not had_room:
            self._loop.remove_writer(self._socket)
            self._room.set()
        if self._is_closing:
            self._end()

    def _pause_reading(self) -> None:
        if not self._is_reading_paused:
            self._is_reading_paused = True
            self._loop.remove_reader(self._socket)

    def _end(self, error: OSError | None = None) -> None:
        if self._is_over.is_set():
            return
        if error is not None:
            self.reason = str(error)
        self._is_closing = True
        self._pause_reading()
        self._loop.remove_writer(self._socket)
        self._socket.close()
        self._unsent.clear()
        self._is_over.set()
        self._timer.cancel()
        _settle(self._arrival)
        self._room.set()

    # ---- parts ----

    def _find_parts(self, data: bytes) -> None:
        most_parts = _MOST_PARTS_AT_ONCE if self._is_admitted else 1
        try:
            parts = self._reader.feed(data, most_parts)
        except CaseError as error:
            self._break(str(error))
            return
        self._may_hold_parts = len(parts) == most_parts
        self._take(parts)

    def _take(self, parts: list[Part]) -> None:
        for part in parts:
            if part.kind is not PartKind.PING or not self._is_admitted:
                self._parts.append(part)
                self._unread_bytes += len(part.raw) + _PART_BYTES
        if self._parts:
            _settle(self._arrival)
        if self._may_hold_parts or self._is_full:
            self._pause_reading()
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
        if self._is_closing:
            return
        if self._may_hold_parts:
            self._find_parts(b"")
        else:
            self._is_reading_paused = False
            self._loop.add_reader(self._socket, self._on_readable)

    def _look_later(self) -> None:
        self._timer = self._loop.call_later(PING_EVERY_S, self._look)

    def _look(self) -> None:
        """Pings the other side, and ends the connection if it has been silent for some looks.

        Counts looks and not time, because this event loop may itself be late. Who has not taken what has come does not
        hear more.
        """
        is_silent = not self._has_heard and (not self._is_reading_paused or self._is_closing)
        self._silent_looks = self._silent_looks + 1 if is_silent else 0
        self._has_heard = False
        if self._silent_looks >= MOST_SILENT_LOOKS:
            self._break(SILENT)
            return
        if not self._unsent:
            self._unsent.append(memoryview(head_of(PartKind.PING, 0)))
            self._flush()
        self._look_later()

    def _break(self, reason: str) -> None:
        self.reason = reason
        self._end()


def _user_of(connected: socket.socket) -> int:
    """Returns the user of the process on the other side."""
    _, user, _ = _CREDENTIALS.unpack(connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return int(user)


def _settle(future: asyncio.Future[None] | None) -> None:
    if future is not None:
        with suppress(asyncio.InvalidStateError):  # it was cancelled
            future.set_result(None)
