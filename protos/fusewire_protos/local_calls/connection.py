"""One connection of a Unix socket, which carries one local call. Both sides use this class, each in its event loop."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import struct

from fusewire_protos.local_calls.part_socket import SHORT_BYTES, PartSocket, Take
from fusewire_protos.local_calls.parts import Part, PartKind, Place

PING_EVERY_S = 5.0
_CREDENTIALS = struct.Struct("3i")  # process, user, group


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
    """Waits for what `PartSocket` does: see there.

    Once the connection is over, `receive` returns None after the last part, and what is sent is dropped.
    """

    def __init__(self, connected: socket.socket, most_bytes: int, *, is_admitted: bool = True) -> None:
        self._socket = PartSocket(connected, most_bytes, PING_EVERY_S, is_admitted=is_admitted)

    @property
    def reason(self) -> str:
        """Why the connection is over."""
        return self._socket.reason

    async def send(self, kind: PartKind, *pieces: bytes | memoryview) -> None:
        """Sends a part, whose bytes are those of all pieces. Waits while the other side does not read.

        Returns once the system has the bytes of a long part.
        """
        own = self._socket
        while not own.room.is_set():
            await own.room.wait()
        if own.is_closing:
            await asyncio.sleep(0)  # whoever sends in a loop is told by others that it is over
            return
        length = sum(map(len, pieces))
        own.put(kind, pieces, length)
        if length < SHORT_BYTES:
            return
        try:
            await own.room.wait()
        except asyncio.CancelledError:
            own.keep_unsent()  # so that other parts may follow
            raise

    def send_now(self, kind: PartKind, raw: bytes) -> bool:
        """Sends a short part if nothing is unsent. Returns whether it did."""
        if len(raw) >= SHORT_BYTES or not self._socket.room.is_set():
            return False
        self._socket.put(kind, (raw,), len(raw))
        return True

    async def receive(self) -> Part | None:
        """Returns the next part, or None if the connection is over. Only one task may wait here."""
        part = self._socket.next_part()
        if part is None:
            await self._socket.arrival()
            part = self._socket.next_part()
        return part

    async def deliver(self, take: Take) -> bool:
        """Gives messages to `take` as they come, one in a turn of the event loop, until it returns False.

        Returns False at a part that is no message, and once the connection is over. Raises what `take` raises.
        """
        try:
            return await self._socket.deliver(take)
        finally:
            self._socket.deliver_no_more()

    def read_on(self) -> None:
        """Reads on after the first part."""
        self._socket.read_on()

    def place_by(self, place: Place) -> None:
        """Has long messages received where they belong, from now on until `place_no_more`."""
        self._socket.place_by(place)

    def place_no_more(self) -> None:
        """Writes no more to memory that `place` gave."""
        self._socket.place_no_more()

    async def over(self) -> None:
        """Waits until the connection is over."""
        await self._socket.is_over.wait()

    def close(self) -> None:
        """Closes the connection after what was sent. Reads no more, and gives up a side that does not read either."""
        self._socket.close()

    def abort(self) -> None:
        """Closes the connection at once. What the other side has not taken is lost."""
        self._socket.end()


def _user_of(connected: socket.socket) -> int:
    """Returns the user of the process on the other side."""
    _, user, _ = _CREDENTIALS.unpack(connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return int(user)
