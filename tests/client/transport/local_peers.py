"""A local stream, the session behind it and the server before it, all played by a test."""

from __future__ import annotations

import asyncio
import secrets
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager, suppress
from typing import Any, TypeVar

import numpy as np

from fusewire._errors import FusewireError
from fusewire._stream.receivers import BlockedReader
from fusewire._transport.interface import Attempt, ConnectionCut
from fusewire._transport.local_channel import LocalOffer
from fusewire._transport.local_stream import LocalStream, left_s_until
from fusewire_protos.local_calls.parts import NAME_PREFIX, Opening, Part, PartKind, PartReader, head_of
from tests.patience import HANGS_S

T = TypeVar("T")
MOST_BYTES = 8 << 20
VALUE = np.zeros(1)


class PlayedPeer:
    """A session that sends what is posted, and settles a receiver when the frame that it awaits comes."""

    def __init__(self) -> None:
        self.posted: deque[bytes] = deque()
        self.receivers: dict[bytes, BlockedReader] = {}
        self.came: list[tuple[int, bytes]] = []  # with the thread that brought it
        self.before_next_frame: Callable[[], object] = lambda: None
        self.before_frame: Callable[[bytes], object] = lambda _raw: None

    def receiver(self, raw: bytes) -> BlockedReader:
        return self.receivers.setdefault(raw, BlockedReader())

    def next_frame(self) -> bytes | None:
        self.before_next_frame()
        return self.posted.popleft() if self.posted else None

    def on_frame(self, raw: bytes) -> bool:
        self.before_frame(raw)
        self.came.append((threading.get_ident(), raw))
        receiver = self.receivers.pop(raw, None)
        if receiver is not None:
            receiver.set_result(VALUE)
        return False

    def is_awaited(self) -> bool:
        return bool(self.receivers)

    # What a stream does not call.

    def hello(self) -> bytes:
        raise NotImplementedError

    def on_tick(self) -> float:
        raise NotImplementedError

    def on_download(self, fetch: int, raw: bytearray | memoryview) -> None:
        raise NotImplementedError

    def on_download_failed(self, fetch: int, reason: Exception) -> None:
        raise NotImplementedError

    def on_cut(self, reason: ConnectionCut) -> Attempt | None:
        raise NotImplementedError

    def local_offer(self) -> LocalOffer | None:
        raise NotImplementedError

    def on_lost(self, error: FusewireError) -> None:
        raise NotImplementedError


class Played:
    """A stream in an event loop of its own, whose server is `self.server`, a bare socket.

    A thread that waits polls for `busy_poll_us` before it sleeps.
    """

    def __init__(self, new_loop: Callable[[], asyncio.AbstractEventLoop], busy_poll_us: int = 0) -> None:
        self.peer = PlayedPeer()
        self.loop = new_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, name="played I/O")
        self.thread.start()
        name = NAME_PREFIX + secrets.token_hex(8)
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(f"\0{name}")
            listening.listen()
            self.stream = self.in_loop(lambda: self._open(LocalOffer(name, b"secret", MOST_BYTES, busy_poll_us)))
            self.server, _ = listening.accept()
        self.server.settimeout(HANGS_S)
        self._reader = PartReader(MOST_BYTES)
        self._parts: deque[Part] = deque()
        self.reading = self.start(self.stream.read(self._on_frame))
        self.until(lambda: self.stream._is_registered)

    def _open(self, offer: LocalOffer) -> LocalStream:
        return LocalStream(offer, Opening("Session", (), "", offer.secret), self.peer)

    def _on_frame(self, raw: bytes) -> None:
        self.peer.on_frame(raw)

    # ---- the client's threads ----

    def start(self, work: Any) -> Future[Any]:
        """Lets a coroutine run in the I/O thread."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def in_loop(self, act: Callable[[], T]) -> T:
        """Calls it in the I/O thread."""

        async def acting() -> T:
            return act()

        result: T = self.start(acting()).result(HANGS_S)
        return result

    def wait(self, raw: bytes, within_s: float | None = HANGS_S, *, ends_s: float | None = None) -> bool:
        """Waits for a frame as a transport does, at most `within_s` once others receive."""
        receiver = self.peer.receiver(raw)
        if self.stream.drive(receiver, ends_s):
            return True
        left_s = left_s_until(ends_s)
        return receiver.has_settled_within(within_s if left_s is None else left_s)

    @contextmanager
    def waiting(self, raw: bytes, *, has_turn: bool = True) -> Iterator[Waiter]:
        """Another thread that waits for a frame: it polls if it has the turn, or else has begun to wait."""
        waiter = Waiter(lambda: self.wait(raw))
        waiter.start()
        try:
            if has_turn:
                self.until(lambda: self.stream._turn.locked() and self.stream._turn_thread == waiter.ident)
                self.until(lambda: not self.stream._is_registered)  # else the I/O thread may receive before
            else:
                self.until(lambda: raw in self.peer.receivers)
            yield waiter
        finally:
            waiter.join(HANGS_S)
            assert not waiter.is_alive()

    def until(self, condition: Callable[[], object]) -> None:
        """Returns once it is so. The loop has its turns meanwhile."""
        for _ in range(1_000_000):
            if condition():
                return
            self.in_loop(lambda: None)
        raise AssertionError("it did not come about")

    # ---- the server ----

    def say(self, *frames: bytes, kind: PartKind = PartKind.MESSAGE) -> None:
        self.server.sendall(b"".join(head_of(kind, len(raw)) + raw for raw in frames))

    def hear(self) -> Part:
        """The next part that the client has sent, but for pings."""
        while not self._parts:
            data = self.server.recv(1 << 20)
            assert data, "the client has closed"
            self._parts += [part for part in self._reader.feed(data) if part.kind is not PartKind.PING]
        return self._parts.popleft()

    def close(self) -> None:
        with suppress(Exception):
            self.in_loop(self.stream.cancel)
        self.server.close()
        self.until(lambda: self.stream._is_closed)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(HANGS_S)
        self.loop.close()


class Waiter(threading.Thread):
    """Keeps what it returns or raises."""

    def __init__(self, act: Callable[[], bool]) -> None:
        super().__init__(daemon=True)
        self._act = act
        self.outcome: bool | BaseException | None = None

    def run(self) -> None:
        try:
            self.outcome = self._act()
        except BaseException as error:  # noqa: BLE001 - a test looks at it
            self.outcome = error


@contextmanager
def playing(new_loop: Callable[[], asyncio.AbstractEventLoop], busy_poll_us: int = 0) -> Iterator[Played]:
    with closing(Played(new_loop, busy_poll_us)) as played:
        yield played
