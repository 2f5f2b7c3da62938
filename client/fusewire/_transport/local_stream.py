"""A session's stream as a local call. A thread that waits for a value sends and receives by itself.

So a read needs no other thread of this process: waking one takes as long as the rest of the way to the server. The I/O
thread sends and receives whenever nobody waits, or somebody waits for something other than a value. A thread that waits
does not sleep at once: a processor that slept takes longer to wake than a short step in all.

Whoever sends holds `_sending`, and whoever receives `_receiving`, so any thread may do either at any time. Which thread
receives is only a matter of who is woken: the I/O thread, if `_io_listens`, or the one thread that has the turn. It
polls, and is told by `_nudge` to stop when the I/O thread is to receive again.

A signal handler may raise anywhere in this code, again and again, so nothing depends on code that runs after that:

- A lock that is held by `with` is released in any case. A wait holds a lock of its own while it lasts, and the turn is
  taken while the lock of the last wait that took it is held.
- Bytes that were just received, or sent in part, are lost. So whoever sends or receives says so before, in `_sends` or
  `_receives`, and takes it back afterwards. Who holds the lock and finds it said breaks the stream, and the session is
  resumed over another one, which brings what was lost.
- What else was left undone, the I/O thread does at its next tick.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import grpc

from fusewire._errors import ProtocolError
from fusewire._transport.interface import Peer, Receiver
from fusewire._transport.local_channel import LocalOffer
from fusewire_protos.errors import CaseError
from fusewire_protos.local_calls.connection import PING_EVERY_S
from fusewire_protos.local_calls.part_socket import MOST_SILENT_LOOKS, SILENT
from fusewire_protos.local_calls.parts import (
    Opening,
    Part,
    PartKind,
    PartReader,
    Status,
    decode_status,
    encode_opening,
    head_of,
)

_RECEIVED_BYTES = 256 << 10  # at once
# So long after a wait its thread is expected to wait again, and the I/O thread listens only if a frame is awaited.
_LEASE_S = 0.02
_LONGEST_POLL_MS = 50.0  # a signal that comes just before a poll does not end it, and is then noticed so late
MOST_BUSY_POLL_US = 10_000  # whatever a server says
_CLOSE_AGAIN_S = 0.01
_GONE = grpc.StatusCode.UNAVAILABLE.value[0]
_CODES = {code.value[0]: code for code in grpc.StatusCode}


class _Driving(threading.local):
    """Locked by a thread while it sends or receives."""

    def __init__(self) -> None:
        self.lock = threading.RLock()


_here = _Driving()


class _Polling:
    """Which wait of this process may poll: one, because others would take the interpreter and a processor from it."""

    wait = threading.Lock()  # of the last wait that polled; it is locked as long as the wait lasts


def drives_here() -> bool:
    """Tells whether the calling thread just sends or receives for a session: then its code must not wait for any."""
    # `_is_owned` is private, but `threading.Condition` calls this method as well.
    return _here.lock._is_owned()  # type: ignore[attr-defined, no-any-return]


class LocalStream:
    """The stream of one session. Any thread may call `drive`, `listen` and `is_over`, others the I/O thread."""

    def __init__(self, offer: LocalOffer, opening: Opening, peer: Peer) -> None:
        """Connects. Raises OSError if the server cannot be reached."""
        self._peer = peer
        self._loop = asyncio.get_running_loop()
        self._io_thread = threading.get_ident()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.setblocking(False)
            self._socket.connect(f"\0{offer.name}")
            self._nudge = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        except BaseException:
            self._socket.close()
            raise
        self._on_frame: Callable[[bytes], None]
        has_processor = len(os.sched_getaffinity(0)) > 1  # beside that of other threads of this process
        self._busy_poll_ns = min(offer.busy_poll_us, MOST_BUSY_POLL_US) * 1000 if has_processor else 0
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)
        self._poll.register(self._nudge, select.POLLIN)
        self._ended = asyncio.Event()
        self._room = asyncio.Event()  # set once what was sent has been taken
        self._sending = threading.Lock()
        self._receiving = threading.Lock()
        self._choosing = threading.RLock()  # guards the turn, and writes to `_nudge`
        self._turn = threading.Lock()  # of the wait that has the turn, or had it last
        self._turn_thread = 0
        self._left_at_s = 0.0  # when a thread has last given up the turn
        self._io_listens = False
        self._is_registered = False  # with the event loop; only the I/O thread uses it
        self._is_cancelled = False
        self._is_closed = False
        self._has_heard = True  # since the last look
        self._silent_looks = 0
        # `_sending` guards the next two fields, and `_receiving` the two after them.
        self._unsent = bytearray(_part(PartKind.OPEN, encode_opening(opening)))
        self._sends = False
        self._parts = PartReader(offer.most_bytes)
        self._receives = False
        self._status: Status | None = None  # once the stream has ended
        self._failure: Exception | None = None  # of the peer
        self.is_interrupted = False  # whether the stream has ended because a signal handler raised
        self._look_later()

    # ---- any thread ----

    def drive(self, receiver: Receiver, ends_s: float | None) -> bool:
        """Sends what the peer has, and receives until `receiver` has settled.

        Returns False if the time is over, and if another thread receives: then the caller is to wait for it.
        """
        self._send_peers(is_all=True)
        wait = threading.Lock()
        with wait:
            has_turn = self._take_turn(wait)
            has_settled = has_turn and self._receive_until(receiver, ends_s)
        if has_turn:
            self._left_at_s = time.monotonic()
            if not has_settled or self._peer.is_awaited():
                self.listen()
        elif self._turn_thread == threading.get_ident():  # a signal handler waits while its thread does
            self.listen()
        return has_settled

    def listen(self) -> None:
        """Has the I/O thread receive, because somebody awaits other things than a value."""
        if not self._io_listens:
            self._io_listens = True
            self._stop_receiver()
            self._call(self._register)

    @property
    def is_over(self) -> bool:
        return self._status is not None

    def _take_turn(self, wait: threading.Lock) -> bool:
        with self._choosing:
            if self._turn.locked():
                return False
            self._turn, self._turn_thread, self._io_listens = wait, threading.get_ident(), False
        if self._is_registered:
            self._call(self._register)
        return True

    def _receive_until(self, receiver: Receiver, ends_s: float | None) -> bool:
        """Receives until `receiver` has settled, the time is over, or the I/O thread is to receive. Has the turn."""
        sleeps_from_ns = time.perf_counter_ns()
        if self._busy_poll_ns and not _Polling.wait.locked():
            _Polling.wait = self._turn
            sleeps_from_ns += self._busy_poll_ns
        while not receiver.has_settled_within(0):
            left_s = left_s_until(ends_s)
            if left_s == 0 or self._io_listens or self._status is not None:
                return False
            longest_ms = _LONGEST_POLL_MS if time.perf_counter_ns() >= sleeps_from_ns else 0
            ready = self._poll.poll(longest_ms if left_s is None else min(left_s * 1000, longest_ms))
            if not ready and not longest_ms:
                continue
            if (self._nudge, select.POLLIN) in ready:
                with suppress(BlockingIOError):
                    os.eventfd_read(self._nudge)
            self._receive()
        return True

    # ---- the I/O thread ----

    async def write(self, frame: bytes) -> None:
        self._send(PartKind.MESSAGE, frame)
        await self._sent()

    async def send_next(self) -> bool:
        has_sent = self._send_peers(is_all=False)
        if has_sent:
            await self._sent()
        return has_sent

    async def done_writing(self) -> None:
        self._send(PartKind.END, b"")
        self.listen()

    async def read(self, on_frame: Callable[[bytes], None]) -> None:
        self._on_frame = on_frame
        self.listen()
        await self._ended.wait()
        if self._failure is not None:
            raise self._failure

    def on_tick(self) -> None:
        """Does what a thread that was interrupted has left undone, and listens if no thread is expected to."""
        if self._is_registered != self._io_listens:
            self._register()
        self._receive_here()
        has_left = time.monotonic() - self._left_at_s > _LEASE_S or self._peer.is_awaited()
        if has_left and not self._turn.locked():
            self.listen()

    def cancel(self) -> None:
        """Ends the stream. Afterwards no thread asks the peer for frames, or brings it any."""
        self._timer.cancel()
        with self._sending, self._receiving:
            self._is_cancelled = True
        self._end(Status(grpc.StatusCode.CANCELLED.value[0], "the stream was cancelled"))
        self._register()
        self._loop.remove_writer(self._socket)
        self._close()

    async def code(self) -> grpc.StatusCode:
        await self._ended.wait()
        return grpc.StatusCode.UNKNOWN if self._status is None else _CODES.get(self._status.code, _CODES[2])

    async def details(self) -> str:
        await self._ended.wait()
        return "" if self._status is None else self._status.details

    async def _sent(self) -> None:
        """Waits until the server has taken what was sent. Lets others have their turn in any case."""
        await asyncio.sleep(0)
        while self._unsent and not self.is_over:
            self._room.clear()
            self._watch_room()
            await self._room.wait()

    def _register(self) -> None:
        """Has the event loop watch the socket, or not, as `_io_listens` says."""
        wants = self._io_listens and not self.is_over
        if wants and not self._is_registered:
            self._loop.add_reader(self._socket, self._receive_here)
        elif not wants and self._is_registered:
            self._loop.remove_reader(self._socket)
        self._is_registered = wants

    def _receive_here(self) -> None:
        if self._receive():
            self._stop_receiver()  # what it polls for may have been received here
        if self.is_over:
            self._register()

    def _watch_room(self) -> None:
        if self._unsent and not self._is_cancelled:
            self._loop.add_writer(self._socket, self._on_writable)

    def _on_writable(self) -> None:
        with _here.lock, self._sending:
            if self._may_send():
                self._flush()
            is_done = not self._unsent or self.is_over
        if is_done:
            self._loop.remove_writer(self._socket)
            self._room.set()

    def _look_later(self) -> None:
        self._timer = self._loop.call_later(PING_EVERY_S, self._look)

    def _look(self) -> None:
        """Pings the server, and ends the stream if the server has been silent for some looks: see LocalConnection."""
        self._silent_looks = 0 if self._has_heard else self._silent_looks + 1
        self._has_heard = False
        if self._silent_looks >= MOST_SILENT_LOOKS:
            self._end(Status(_GONE, SILENT))
            return
        self.listen()  # the server's pings are not read otherwise while nobody waits
        if not self._unsent:
            self._send(PartKind.PING, b"")
        self._look_later()

    def _close(self) -> None:
        """Closes the files, once no thread polls them."""
        with self._choosing:
            is_free = not self._turn.locked()
            if is_free:
                self._is_closed = True
                self._turn.acquire()  # for good
        if is_free:
            self._socket.close()
            os.close(self._nudge)
        else:
            self._stop_receiver()
            self._loop.call_later(_CLOSE_AGAIN_S, self._close)

    # ---- whoever sends or receives ----

    def _send_peers(self, *, is_all: bool) -> bool:
        """Sends all frames that the peer has, or only the next one. Returns whether there was one."""
        with _here.lock, self._sending:
            if not self._may_send():
                return False
            self._sends = True
            frame = self._peer.next_frame()
            has_sent = frame is not None
            while frame is not None:
                self._put(_part(PartKind.MESSAGE, frame))
                frame = self._peer.next_frame() if is_all else None
            self._sends = False
        return has_sent

    def _send(self, kind: PartKind, raw: bytes) -> None:
        with _here.lock, self._sending:
            if self._may_send():
                self._put(_part(kind, raw))

    def _may_send(self) -> bool:
        """Returns whether the stream goes on. Breaks it if a thread was interrupted. The caller has `_sending`."""
        if self._sends:
            self._break()
        return not self.is_over

    def _put(self, part: bytes) -> None:
        """Sends a part behind what is not yet sent."""
        self._unsent += part
        self._flush()
        if self._unsent:
            self._call(self._watch_room)

    def _flush(self) -> None:
        """Sends as much as the socket takes. Once it takes nothing any more, the end of the stream is received."""
        try:
            sent = self._socket.send(self._unsent, socket.MSG_NOSIGNAL)
        except OSError as error:
            _raise_again_if_foreign(error)
            sent = 0 if isinstance(error, BlockingIOError) else len(self._unsent)
        del self._unsent[:sent]

    def _receive(self) -> bool:
        """Receives what has come, and hands it to the peer. Returns False if nothing has come."""
        with _here.lock, self._receiving:
            if self._receives:
                self._break()
            if self._is_cancelled or self.is_interrupted:
                return True
            self._receives = True
            has_come = self._receive_some()
            self._receives = False
        return has_come

    def _receive_some(self) -> bool:
        try:
            data = self._socket.recv(_RECEIVED_BYTES)
        except OSError as error:
            _raise_again_if_foreign(error)
            if isinstance(error, BlockingIOError):
                return False
            self._end(Status(_GONE, str(error)))
            return True
        try:
            self._take(data)
        except Exception as error:
            if not isinstance(error, ProtocolError) and threading.get_ident() != self._io_thread:
                raise  # a signal handler's
            self._failure = error  # which `read` raises
            self._end(Status(_GONE, repr(error)))
        return True

    def _take(self, data: bytes) -> None:
        self._has_heard = True
        if not data:
            self._end(Status(_GONE, "the connection was closed"))
            return
        try:
            parts = self._parts.feed(data)
            for part in parts:
                self._take_part(part)
        except CaseError as error:
            self._end(Status(_GONE, str(error)))

    def _take_part(self, part: Part) -> None:
        if part.kind is PartKind.MESSAGE:
            self._on_frame(part.raw)
        elif part.kind is PartKind.STATUS:
            self._end(decode_status(part.raw))

    def _break(self) -> None:
        """Ends the stream, from which an interrupted thread has taken bytes, or sent only some."""
        self.is_interrupted = True
        self._end(Status(_GONE, "a signal handler raised"))

    def _end(self, status: Status) -> None:
        self._status = self._status or status
        self._call(self._ended.set)
        self._call(self._room.set)

    def _stop_receiver(self) -> None:
        """Has the thread that has the turn look whether it is still to receive."""
        with self._choosing:
            if self._turn.locked() and not self._is_closed:
                with suppress(BlockingIOError):
                    os.eventfd_write(self._nudge, 1)

    def _call(self, function: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop is closed; then the session ends too
            self._loop.call_soon_threadsafe(function)


def _raise_again_if_foreign(error: OSError) -> None:
    """Raises what a signal handler has raised, such as a TimeoutError: only the system's errors have a number."""
    if error.errno is None:
        raise error


def left_s_until(ends_s: float | None) -> float | None:
    """Returns how many seconds are left until a time of the monotonic clock; None if there is no such time."""
    return None if ends_s is None else max(ends_s - time.monotonic(), 0.0)


def _part(kind: PartKind, raw: bytes) -> bytes:
    return head_of(kind, len(raw)) + raw
