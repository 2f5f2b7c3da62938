"""Defines the interface between a session and its transport, which carries the frames.

A transport has one thread of its own, the I/O thread. In this thread, or in one that waits for a value, the transport
asks the session, its peer, for frames. The session never pushes a frame to the transport. So entries that become ready
together travel in one frame, and no user's thread waits for a socket unless it waits for a value anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from fusewire._errors import FusewireError, SessionLost
from fusewire._transport.local_channel import LocalOffer


class ConnectionCut(SessionLost):
    """The connection broke, and nobody has ended the session. Only transports raise it, and sessions see it."""


class Attempt(NamedTuple):
    """When a lost connection is to be made again."""

    delay_s: float  # from now
    within_s: float  # after the delay, until the server has welcomed us


class Peer(Protocol):
    """The session, as its transport sees it. The transport calls all methods in the I/O thread. They do not block.

    It may also call `next_frame`, `on_frame` and `is_awaited` in a user's thread that waits for a value, each of them
    in one thread at a time. There a signal handler may raise. Then the connection is made anew, and nothing is lost.
    """

    def hello(self) -> bytes:
        """Returns the frame that opens a connection."""

    def next_frame(self) -> bytes | None:
        """Returns the next frame to be sent, or None if nothing waits."""

    def on_frame(self, raw: bytes) -> bool:
        """Takes a frame that has arrived. Returns True if there may now be something to send."""

    def is_awaited(self) -> bool:
        """Tells whether anybody awaits a frame."""

    def on_tick(self) -> float:
        """Does the periodic work that is due. Returns how many seconds may pass before the next call."""

    def on_download(self, fetch: int, raw: bytearray | memoryview) -> None:
        """Takes the bytes of a downloaded value. The session keeps `raw`, so the transport must not reuse `raw`."""

    def on_download_failed(self, fetch: int, reason: Exception) -> None:
        """Takes note that a download failed."""

    def on_cut(self, reason: ConnectionCut) -> Attempt | None:
        """Takes note that a connection or an attempt at one broke. Returns the next attempt, or None for no more."""

    def local_offer(self) -> LocalOffer | None:
        """Returns what the last welcome offers to a client on the server's machine."""

    def on_lost(self, error: FusewireError) -> None:
        """Takes note that the last connection has ended. After this nothing is sent and nothing arrives."""


class Receiver(Protocol):
    """What a thread waits for."""

    def has_settled_within(self, timeout_s: float | None) -> bool:
        """Waits. Returns False if it has not settled in time. It is not called again after it has returned True."""


class Transport(Protocol):
    """Any thread may call the methods. They return at once, except `wait`, `upload` and `wait_closed`."""

    def open(self, peer: Peer) -> None:
        """Connects, sends the peer's hello and begins to deliver."""

    def wake(self) -> None:
        """Tells the I/O thread that the peer has frames."""

    def wait(self, receiver: Receiver, timeout_s: float | None) -> bool:
        """Sends what the peer has, and waits until `receiver` has settled. Returns False after the timeout.

        The calling thread may do the I/O thread's work meanwhile.
        """

    def call(self, act: Callable[[], object]) -> None:
        """Calls `act` in the I/O thread: now, if that is the calling thread, or else soon."""

    def want_tick(self) -> None:
        """Asks for a call of `on_tick` before the planned time, because something has begun to wait."""

    def is_own_thread(self) -> bool:
        """Whether the caller does the I/O thread's work, and so must not wait for frames that only it receives."""

    def upload(self, session_id: bytes, handle: int, chunks: Sequence[memoryview]) -> None:
        """Copies the bytes of one upload, and sends the copy outside the stream. Waits while the queue is full.

        Waits until a large upload is sent, and copies it anew if the connection breaks. If an error is raised
        meanwhile, the upload ends at that point. The server then reports an error for the handle, because the handle
        got fewer bytes than declared.
        """

    def download(self, session_id: bytes, fetch: int, size_bytes: int) -> None:
        """Begins to download a value outside the stream; `on_download` or `on_download_failed` follows."""

    def close(self, farewell: bytes | None) -> None:
        """Begins to end the connection. `farewell` is the last frame to be sent, or None for no such frame."""

    def wait_closed(self, timeout_s: float) -> None:
        """Waits up to `timeout_s` for the connection to end. Returns at once if called in the I/O thread.

        The I/O thread must not wait, because the I/O thread itself ends the connection.
        """
