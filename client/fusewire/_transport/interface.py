"""The interface between a session and its transport, which carries the frames.

A transport has one thread of its own, the I/O thread. In it the transport asks its peer, the session, for frames; the
session never pushes one. So entries that are ready together travel in one frame, and no user's thread waits for a
socket.
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
        """Takes a frame that has arrived. True if there may now be something to send."""

    def on_tick(self) -> float:
        """Does the work that is due; returns the seconds after which it is to be called again."""

    def on_download(self, fetch: int, raw: bytearray | memoryview) -> None:
        """Takes the bytes of a downloaded value. The session keeps them, so the transport must not reuse them."""

    def on_download_failed(self, fetch: int, reason: Exception) -> None:
        """Takes note that a download failed."""

    def on_lost(self, error: FusewireError) -> None:
        """Takes note that the connection has ended: nothing is sent and nothing arrives any more."""


class Transport(Protocol):
    """Any thread may call the methods. They return at once, except `upload` and `wait_closed`."""

    def open(self, peer: Peer) -> None:
        """Connects, sends the peer's hello and begins to deliver."""

    def wake(self) -> None:
        """Tells the I/O thread that the peer has frames."""

    def want_tick(self) -> None:
        """Asks for a tick sooner than the last one asked for, because ops have begun to wait."""

    def is_own_thread(self) -> bool:
        """Whether the caller is in the I/O thread, which must not wait for frames that it receives itself."""

    def upload(self, session_id: bytes, handle: int, chunks: Iterable[memoryview]) -> None:
        """Copies the bytes of one upload, which travel outside the stream. Waits while the queue is full.

        If copying raises, the upload ends there: the server fails a handle that gets fewer bytes than declared.
        """

    def download(self, session_id: bytes, fetch: int, size_bytes: int) -> None:
        """Begins to download a value outside the stream; `on_download` or `on_download_failed` follows."""

    def close(self, farewell: bytes | None) -> None:
        """Begins to end the connection. `farewell`: the last frame to be sent."""

    def wait_closed(self, timeout_s: float) -> None:
        """Waits up to `timeout_s` for the connection to end. Returns at once in the I/O thread, which ends it."""
