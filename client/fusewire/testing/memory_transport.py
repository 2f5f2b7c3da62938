"""Connects a session to a `MemoryServer` in the same process, without a network."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from fusewire._errors import FusewireError, SessionLost
from fusewire._transport.interface import ConnectionCut, Peer, Receiver
from fusewire.testing.memory_server import MemoryServer


class MemoryTransport:
    """Exchanges frames in a thread of its own, or, if `is_manual` is true, when a test calls `run_once`.

    `breaks` is asked about each frame, whichever way it goes, before it arrives. If it returns true the frame is lost,
    and the connection is cut and made again.
    """

    def __init__(
        self, server: MemoryServer, *, is_manual: bool = False, breaks: Callable[[], bool] = lambda: False
    ) -> None:
        self._server = server
        self._is_manual = is_manual
        self._breaks = breaks
        self._is_cut = False
        self._exchanging = threading.RLock()
        self._awake = threading.Event()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="fusewire-memory", daemon=True)

    def open(self, peer: Peer) -> None:
        self._peer = peer
        self._send(peer.hello())
        if not self._is_manual:
            self._thread.start()

    def wake(self) -> None:
        self._awake.set()

    def wait(self, receiver: Receiver, timeout_s: float | None) -> bool:
        self.wake()
        return receiver.has_settled_within(timeout_s)

    def call(self, act: Callable[[], object]) -> None:
        act()

    def want_tick(self) -> None:
        self._awake.set()

    def is_own_thread(self) -> bool:
        return threading.current_thread() is self._thread

    def run_once(self) -> float:
        """Calls the peer's `on_tick` and sends all frames that wait. Returns the seconds until the next tick."""
        delay_s = self._peer.on_tick()
        while self._exchange_next():
            pass
        return delay_s

    def cut(self) -> None:
        """Cuts the connection. Nothing travels until `reconnect`."""
        with self._exchanging:
            self._is_cut = True
            if self._peer.on_cut(ConnectionCut("the connection in memory was cut")) is None:
                raise SessionLost("the connection in memory was cut")

    def reconnect(self) -> None:
        """Makes the connection again, at once."""
        with self._exchanging:
            self._is_cut = False
            self._send(self._peer.hello())

    def complete(self, segments: int | None = None) -> None:
        """Returns credit that the server holds, as `MemoryServer.complete` does."""
        self._exchange(lambda: self._server.complete(segments))

    def upload(self, session_id: bytes, handle: int, chunks: Sequence[memoryview]) -> None:
        """Sends the entry that declares the upload, then the bytes.

        `MemoryServer` must know the entry before the bytes arrive. A real server would wait for the entry.
        """
        raw = b"".join(chunks)
        with self._exchanging:
            self.run_once()
            self._exchange(lambda: self._server.upload(handle, raw))

    def download(self, session_id: bytes, fetch: int, size_bytes: int) -> None:
        self._peer.on_download(fetch, bytearray(self._server.beside.pop(fetch)))

    def close(self, farewell: bytes | None) -> None:
        self._is_closed = True
        self._awake.set()

    def wait_closed(self, timeout_s: float) -> None:
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(timeout_s)
        self._peer.on_lost(SessionLost("the connection was closed"))

    def _run(self) -> None:
        """Exchanges frames until the session closes. What fails here ends the session, which would wait for ever."""
        try:
            while not self._is_closed:
                self._awake.wait(self.run_once())
                self._awake.clear()
        except FusewireError as reason:
            self._peer.on_lost(reason)
        except Exception as reason:
            self._peer.on_lost(SessionLost(f"the server in memory failed: {reason!r}"))
            raise

    def _exchange_next(self) -> bool:
        """Sends the next frame, if one waits. No other thread sends a later frame before it."""
        with self._exchanging:
            frame = self._peer.next_frame()
            if frame is not None:
                self._send(frame)
            return frame is not None

    def _send(self, frame: bytes) -> None:
        if self._breaks():
            self._cut_and_reconnect()
        else:
            self._exchange(lambda: self._server.receive(frame))

    def _exchange(self, ask: Callable[[], list[bytes]]) -> None:
        """Has the server do something, and brings the peer what it answers, unless the connection is or gets cut."""
        with self._exchanging:
            for raw in ask():
                if self._is_cut:
                    return
                if self._breaks():
                    self._cut_and_reconnect()
                    return
                self._peer.on_frame(raw)

    def _cut_and_reconnect(self) -> None:
        self.cut()
        self.reconnect()
