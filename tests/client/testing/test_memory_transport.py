"""The transport of a session in memory, which several threads use at the same time."""

from __future__ import annotations

from threading import Event, Thread
from typing import Any, cast

from fusewire.testing import MemoryServer, MemoryTransport
from tests.patience import HANGS_S

_WITHIN_S = HANGS_S


class _Peer:
    """Has two frames to send. The thread that takes the first one then lets others run for a while."""

    def __init__(self) -> None:
        self.is_first_taken, self.is_second_sent = Event(), Event()
        self._frames = [b"second", b"first"]

    def hello(self) -> bytes:
        return b"hello"

    def on_tick(self) -> float:
        return 0.0

    def next_frame(self) -> bytes | None:
        frame = self._frames.pop() if self._frames else None
        if frame == b"first":
            self.is_first_taken.set()
            self.is_second_sent.wait(0.2)
        return frame


class _Server:
    """Keeps what it receives."""

    def __init__(self, peer: _Peer) -> None:
        self.received: list[bytes] = []
        self._peer = peer

    def receive(self, frame: bytes) -> list[bytes]:
        self.received.append(frame)
        if frame == b"second":
            self._peer.is_second_sent.set()
        return []


def test_a_frame_that_a_thread_has_taken_is_sent_before_the_next_one() -> None:
    peer = _Peer()
    server = _Server(peer)
    transport = MemoryTransport(cast(MemoryServer, server), is_manual=True)
    transport.open(cast(Any, peer))
    other = Thread(target=transport.run_once)
    other.start()
    assert peer.is_first_taken.wait(_WITHIN_S)
    transport.run_once()
    other.join(_WITHIN_S)
    assert server.received == [b"hello", b"first", b"second"]
