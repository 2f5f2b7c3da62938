"""A proxy between clients and a server, whose connections break: after some bytes, at once, or without a word.

It cuts at the end of an HTTP/2 frame or inside one. What has passed one way when it cuts may not have passed the other.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from fusewire_protos.address import read_address
from tests.patience import HANGS_S

T = TypeVar("T")

_PIECE_BYTES = 64 << 10
_PREFACE_BYTES = 24  # which a client sends before its first HTTP/2 frame
_HEAD_BYTES = 9  # of an HTTP/2 frame
_RESETS = struct.pack("ii", 1, 0)  # lingering for no time: closing sends a reset


class Cut(NamedTuple):
    """When and how a connection breaks."""

    after_bytes: int  # that have passed in one direction
    is_upwards: bool  # whether bytes to the server are counted, or bytes to the client
    is_at_boundary: bool  # whether it waits for the end of the HTTP/2 frame
    stalls_s: float = 0.0  # how long nothing passes before the reset
    is_half_open: bool = False  # whether the server is told nothing, as by a router that forgets the connection


class Boundaries:
    """Finds the ends of HTTP/2 frames in one direction of a connection. Pure."""

    def __init__(self, *, is_upwards: bool) -> None:
        self._head = b""
        self._left_bytes = _PREFACE_BYTES if is_upwards else 0

    def first_end(self, data: bytes, after: int) -> int | None:
        """Takes the next bytes. Returns the first end of a frame at or after the index `after`, or None."""
        found, at = None, 0
        while at < len(data):
            taken = min(self._left_bytes or _HEAD_BYTES - len(self._head), len(data) - at)
            if self._left_bytes:
                self._left_bytes -= taken
            else:
                self._head += data[at : at + taken]
            at += taken
            if len(self._head) == _HEAD_BYTES:
                self._left_bytes, self._head = int.from_bytes(self._head[:3]), b""
            elif self._head:
                continue
            if not self._left_bytes and found is None and at >= after:
                found = at
        return found


@dataclass(eq=False)
class _Connection:
    """Both ends of one connection."""

    cut: Cut | None
    writers: list[asyncio.StreamWriter] = field(default_factory=list)  # to the client, and to the server
    is_silent: bool = False

    def reset(self, most: int = 2) -> None:
        """Resets both ends, or only the client's if `most` is 1."""
        for writer in self.writers[:most]:
            own = writer.get_extra_info("socket")
            with suppress(OSError):
                own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESETS)
            writer.transport.abort()


class CuttingProxy:
    """Runs in a thread of its own. `next_cut` is asked for each new connection; None cuts it never."""

    def __init__(self, server: str, next_cut: Callable[[], Cut | None]) -> None:
        self._server = read_address(server)
        self._next_cut = next_cut
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._connections: dict[_Connection, None] = {}  # in the order of their beginning; only the thread uses it
        self._tasks: set[asyncio.Task[None]] = set()
        self.cuts = 0
        self.accepts = True  # whether new connections pass, or are reset at once
        self._thread.start()
        self._listening = self._ask(asyncio.start_server(self._accept, "127.0.0.1", 0)).result(HANGS_S)
        self.target = f"127.0.0.1:{self._listening.sockets[0].getsockname()[1]}"

    def cut_all(self) -> None:
        """Resets all connections that there are."""
        self._ask(self._cut_all()).result(HANGS_S)

    def silence_all(self) -> None:
        """Lets nothing pass any more, and says nothing of it, on all connections that there are."""
        self._ask(self._silence(slice(None))).result(HANGS_S)

    def silence_stream(self) -> None:
        """Does so on the connection of a client's stream, which is its oldest."""
        self._ask(self._silence(slice(1))).result(HANGS_S)

    def silence_large_values(self) -> None:
        """Does so on the connection of a client's large values, which is its newest."""
        self._ask(self._silence(slice(-1, None))).result(HANGS_S)

    def lead_to(self, server: str) -> None:
        """Leads new connections to another server."""
        self._server = read_address(server)

    def close(self) -> None:
        self._ask(self._close()).result(HANGS_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(HANGS_S)
        self._loop.close()

    def _ask(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _cut_all(self) -> None:
        for connection in [*self._connections]:
            self.cuts += 1
            connection.reset()

    async def _silence(self, which: slice) -> None:
        for connection in [*self._connections][which]:
            connection.is_silent = True

    async def _close(self) -> None:
        self._listening.close()
        for connection in [*self._connections]:
            connection.reset()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        connection = _Connection(self._next_cut(), [writer])
        self._connections[connection] = None
        try:
            if self.accepts:
                await self._serve(connection, reader)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            connection.reset()
            self._connections.pop(connection, None)
            self._tasks.discard(task)

    async def _serve(self, connection: _Connection, from_client: asyncio.StreamReader) -> None:
        from_server, to_server = await asyncio.open_connection(self._server.host, self._server.port)
        connection.writers.append(to_server)
        to_client = connection.writers[0]
        ways = [
            asyncio.create_task(self._pass(connection, from_client, to_server, is_upwards=True)),
            asyncio.create_task(self._pass(connection, from_server, to_client, is_upwards=False)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            if connection.is_silent:  # neither end is told that the other has closed
                await asyncio.Event().wait()
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _pass(
        self,
        connection: _Connection,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        is_upwards: bool,
    ) -> None:
        """Passes bytes one way until an end closes, or the connection is cut."""
        cut = connection.cut if connection.cut is not None and connection.cut.is_upwards == is_upwards else None
        boundaries, passed_bytes = Boundaries(is_upwards=is_upwards), 0
        while data := await reader.read(_PIECE_BYTES):
            if connection.is_silent:
                await asyncio.Event().wait()
            after = None if cut is None else max(cut.after_bytes - passed_bytes, 0)
            end = boundaries.first_end(data, after or 0)
            if cut is not None and after is not None and after <= len(data):
                place = end if cut.is_at_boundary else after
                if place is not None:
                    await self._cut(connection, cut, writer, data[:place])
                    return
            passed_bytes += len(data)
            writer.write(data)
            await writer.drain()

    async def _cut(self, connection: _Connection, cut: Cut, writer: asyncio.StreamWriter, last: bytes) -> None:
        """Passes the last bytes, and resets the connection, or only the client's end of it."""
        writer.write(last)
        await writer.drain()
        self.cuts += 1
        await asyncio.sleep(cut.stalls_s)
        if cut.is_half_open:
            connection.is_silent = True
            connection.reset(most=1)
        else:
            connection.reset()


def _never() -> None:
    return None


@contextmanager
def proxy_to(server: str, next_cut: Callable[[], Cut | None] = _never) -> Iterator[CuttingProxy]:
    proxy = CuttingProxy(server, next_cut)
    try:
        yield proxy
    finally:
        proxy.close()
