"""Sends and receives the parts of a local call by a connected socket, in the callbacks of an event loop. Never waits.

It uses the socket itself, because the transports of asyncio copy what they receive, and what they cannot send.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from fusewire_protos.errors import CaseError
from fusewire_protos.local_calls.parts import Part, PartKind, PartReader, Place, head_of

MOST_SILENT_LOOKS = 2  # looks, one each `ping_every_s`, that find nothing heard since the last one
SHORT_BYTES = 64 << 10  # at most so many are received at once, but for
_LONG_BYTES = 1 << 20  # of a long message
_MOST_UNREAD_BYTES = 1 << 20  # after so many bytes that nobody has taken, the other side has to wait
_PART_BYTES = 128  # what a part takes beside its bytes
_MOST_PARTS_AT_ONCE = 1024  # found in one step of the event loop, in which nothing else is done
_SOCKET_BYTES = 1 << 20  # that the system may hold of parts of at least
_BULK_BYTES = 512 << 10
SILENT = "ping timeout"  # gRPC's words

Take = Callable[[bytes], bool]


class PartSocket:
    """A connected socket, which this object owns. A part that comes may have at most `most_bytes`.

    With `is_admitted=False` it takes one part, and reads on only after `read_on`: a stranger fills no more memory.
    It is over once the other side has closed it or fallen silent. `reason` tells why.
    """

    def __init__(self, connected: socket.socket, most_bytes: int, ping_every_s: float, *, is_admitted: bool) -> None:
        connected.setblocking(False)
        self._socket = connected
        self._ping_every_s = ping_every_s
        self._reader = PartReader(most_bytes)
        self._is_admitted = is_admitted
        self._loop = asyncio.get_running_loop()
        self._parts: deque[Part] = deque()
        self._unread_bytes = 0
        self._may_hold_parts = False  # whether the reader may hold whole parts
        self._is_reading_paused = False
        self._is_reading_on = False  # whether `_read_on` is about to run
        self._arrival: asyncio.Future[None] | None = None  # somebody waits for it
        self._take: Take | None = None  # gets the messages
        self._delivered: asyncio.Future[bool] | None = None  # who has given `_take` waits for it
        self._is_delivery_due = False  # whether `_deliver` is about to run
        self._unsent: deque[memoryview] = deque()
        self._has_large_buffer = False
        self.room = asyncio.Event()  # set while nothing is unsent
        self.room.set()
        self._has_heard = True  # since the last look
        self._silent_looks = 0
        self.is_closing = False
        self.is_over = asyncio.Event()
        self.reason = "the connection was closed"
        self._timer: asyncio.TimerHandle | None = None
        self._look_later()
        self._loop.add_reader(self._socket, self._on_readable)

    def read_on(self) -> None:
        """Reads on after the first part."""
        self._is_admitted = True
        self._read_on_soon()

    def place_by(self, place: Place) -> None:
        """Has long messages received where they belong, from now on until `place_no_more`."""
        self._reader.place = place

    def place_no_more(self) -> None:
        """Writes no more to memory that `place` gave."""
        self._reader.place_no_more()

    def close(self) -> None:
        """Closes the socket after what was sent. Reads no more, and gives up a side that does not read either."""
        if self.is_closing:
            return
        self.is_closing = True
        self._pause_reading()
        if not self._unsent:
            self.end()

    def end(self, error: OSError | None = None) -> None:
        """Closes the socket at once. What the other side has not taken is lost."""
        if self.is_over.is_set():
            return
        if error is not None:
            self.reason = str(error)
        self.is_closing = True
        self._pause_reading()
        self._loop.remove_writer(self._socket)
        self._socket.close()
        self._unsent.clear()
        self.is_over.set()
        if self._timer is not None:
            self._timer.cancel()
        _settle(self._arrival)
        self._deliver_soon()
        self.room.set()

    # ---- what is sent ----

    def put(self, kind: PartKind, pieces: tuple[bytes | memoryview, ...], length: int) -> None:
        """Sends a part, whose bytes are those of all pieces, after what is unsent. Drops it if the socket is closing.

        Sends what the socket takes now, and the rest later; `room` is cleared meanwhile.
        """
        if self.is_closing:
            return
        if length >= _BULK_BYTES and not self._has_large_buffer:
            self._has_large_buffer = True
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BYTES)
        self._unsent.append(memoryview(head_of(kind, length)))
        for piece in pieces:
            self._unsent.append(memoryview(piece))
        self._flush()

    def keep_unsent(self) -> None:
        """Copies what is unsent, so that its memory may change."""
        self._unsent = deque([memoryview(bytes(piece)) for piece in self._unsent])

    def _flush(self) -> None:
        """Sends as much as the socket takes, and the rest once it takes more."""
        had_room = self.room.is_set()
        try:
            sent = self._socket.sendmsg(self._unsent, (), socket.MSG_NOSIGNAL)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError as error:
            self.end(error)
            return
        while self._unsent and sent >= len(self._unsent[0]):
            sent -= len(self._unsent.popleft())
        if self._unsent:
            self._unsent[0] = self._unsent[0][sent:]
            if had_room:
                self.room.clear()
                self._loop.add_writer(self._socket, self._flush)
            return
        if not had_room:
            self._loop.remove_writer(self._socket)
            self.room.set()
        if self.is_closing:
            self.end()

    # ---- what is received ----

    def next_part(self) -> Part | None:
        """Returns the next part that has come, if there is one."""
        if not self._parts:
            return None
        part = self._parts.popleft()
        self._unread_bytes -= len(part.raw) + _PART_BYTES
        self._read_on_soon()
        return part

    def arrival(self) -> asyncio.Future[None]:
        """Returns a future that is done once a part has come, or the connection is over."""
        self._arrival = self._loop.create_future()
        if self._parts or self.is_over.is_set():
            self._arrival.set_result(None)
        return self._arrival

    def deliver(self, take: Take) -> asyncio.Future[bool]:
        """Gives messages to `take` as they come, one in a turn of the event loop, until it returns False.

        The result is then True. It is False at a part that is no message, and once the connection is over.
        """
        self._take = take
        self._delivered = self._loop.create_future()
        self._deliver_soon()
        return self._delivered

    def deliver_no_more(self) -> None:
        """Leaves further messages to `next_part`."""
        self._take = None

    def _deliver_soon(self) -> None:
        if self._take is not None and not self._is_delivery_due:
            self._is_delivery_due = True
            self._loop.call_soon(self._deliver)

    def _deliver(self) -> None:
        """Gives away the next message. The one behind it waits a turn, in which others have theirs."""
        self._is_delivery_due = False
        take = self._take
        if take is None:
            return
        part = self.next_part()
        if part is None or part.kind is not PartKind.MESSAGE:
            if part is not None or self.is_over.is_set():
                self._end_delivery(has_more=False)
            return
        try:
            goes_on = take(part.raw)
        except Exception as error:  # noqa: BLE001 - whoever waits raises it
            self._end_delivery(has_more=True, error=error)
            return
        if not goes_on:
            self._end_delivery(has_more=True)
        elif self._parts or self.is_over.is_set():
            self._deliver_soon()

    def _end_delivery(self, *, has_more: bool, error: Exception | None = None) -> None:
        self._take = None
        if self._delivered is None or self._delivered.done():
            return
        if error is not None:
            self._delivered.set_exception(error)
        else:
            self._delivered.set_result(has_more)

    def _on_readable(self) -> None:
        rest, data = self._reader.rest, b""
        try:
            if rest is None:
                data = self._socket.recv(SHORT_BYTES)
                count = len(data)
            else:
                count = self._socket.recv_into(rest[:_LONG_BYTES])
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self.end(error)
            return
        if not count:
            self.end()
            return
        self._has_heard = True
        if rest is None:
            self._find_parts(data)
        else:
            self._came(self._reader.filled(count))

    def _pause_reading(self) -> None:
        if not self._is_reading_paused:
            self._is_reading_paused = True
            self._loop.remove_reader(self._socket)

    def _find_parts(self, data: bytes) -> None:
        most_parts = _MOST_PARTS_AT_ONCE if self._is_admitted else 1
        try:
            parts = self._reader.feed(data, most_parts)
        except CaseError as error:
            self._break(str(error))
            return
        self._may_hold_parts = len(parts) == most_parts
        self._came(parts)

    def _came(self, parts: list[Part]) -> None:
        for part in parts:
            if part.kind is not PartKind.PING or not self._is_admitted:
                self._parts.append(part)
                self._unread_bytes += len(part.raw) + _PART_BYTES
        if self._parts:
            _settle(self._arrival)
        if self._may_hold_parts or self._is_full:
            self._pause_reading()
        self._read_on_soon()
        if self._take is not None and not self._is_delivery_due:
            self._deliver()

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
        if self.is_closing:
            return
        if self._may_hold_parts:
            self._find_parts(b"")
        else:
            self._is_reading_paused = False
            self._loop.add_reader(self._socket, self._on_readable)

    # ---- whether the other side is there ----

    def _look_later(self) -> None:
        self._timer = self._loop.call_later(self._ping_every_s, self._look)

    def _look(self) -> None:
        """Pings the other side, and ends the connection if it has been silent for some looks.

        Counts looks and not time, because this event loop may itself be late. Who has not taken what has come does not
        hear more.
        """
        is_silent = not self._has_heard and (not self._is_reading_paused or self.is_closing)
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
        self.end()


def _settle(future: asyncio.Future[None] | None) -> None:
    if future is not None:
        with suppress(asyncio.InvalidStateError):  # it was cancelled
            future.set_result(None)
