"""The line between a session and the world: what carries frames, and what a session answers it.

A transport has one thread of its own, the I/O thread, and asks its peer (the session) for frames; the session never
pushes. So frames that are ready together travel together, and no user's thread waits for a socket.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from fusewire._errors import FusewireError


class Peer(Protocol):
    """The session, as its transport sees it. All methods are called from the I/O thread and do not block."""

    def hello(self) -> bytes:
        """The frame that opens a connection."""

    def next_frame(self) -> bytes | None:
        """The next frame to be sent, or None if nothing waits."""

    def on_frame(self, raw: bytes) -> bool:
        """A frame has arrived. Says whether there may be something to send in consequence."""

    def on_tick(self) -> float:
        """Does what time demands; returns in how many seconds to be called again."""

    def on_download(self, fetch: int, raw: bytearray | memoryview) -> None:
        """The bytes of a value that travelled beside the stream, to keep."""

    def on_download_failed(self, fetch: int, reason: Exception) -> None:
        """They could not be had."""

    def on_lost(self, error: FusewireError) -> None:
        """The connection has ended; nothing will be sent or arrive any more."""


class Transport(Protocol):
    """Methods may be called from any thread and return at once, but for `upload` and `wait_closed`."""

    def open(self, peer: Peer) -> None:
        """Connects, sends the peer's hello and begins to deliver."""

    def wake(self) -> None:
        """The peer has frames."""

    def want_tick(self) -> None:
        """Time demands something sooner than the peer has said: ops have begun to wait."""

    def is_own_thread(self) -> bool:
        """Whether this is the I/O thread, which must not wait for what it brings itself."""

    def upload(self, session_id: bytes, handle: int, chunks: Iterable[memoryview]) -> None:
        """Copies the bytes of one upload, to be carried beside the stream. Waits for room while it is connected.

        Whatever is raised within, no more come: the server fails a handle of fewer bytes than declared.
        """

    def download(self, session_id: bytes, fetch: int, size_bytes: int) -> None:
        """Fetches a value beside the stream; the peer is told."""

    def close(self, farewell: bytes | None) -> None:
        """Begins to end the connection, with a last frame if there is one."""

    def wait_closed(self, timeout_s: float) -> None:
        """Until it has ended, for so long at most; not in the I/O thread, which ends it."""
