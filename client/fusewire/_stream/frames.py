"""The frames of one session, without the connection that carries them: numbering, acknowledgement, resumption.

The client numbers its frames 1, 2, 3, … and keeps each until the server has acknowledged it. When a connection was
lost, a welcome of the same server instance acknowledges the frames that it has, and the others are sent again in order.
Another instance does not know the session. The server's numbered frames carry results. The client acknowledges them,
and drops a frame that arrives twice.

The server registers all new programs of a frame before it applies the entries, which may forget older programs. So a
frame ends before a new program that would exceed the limit; programs that this frame forgets make room in the next one.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from fusewire._errors import ProtocolError, SessionLost
from fusewire_protos import frames
from fusewire_protos.frames import PROTOCOL_VERSION, Entry, Forget, Free, NewProgram, Segment, Upload
from fusewire_protos.v1 import fusewire_pb2 as wire

FRAME_BYTES = 1 << 20  # a frame with so many bytes takes no further entry
_NUMBER_BYTES = 9  # the most that one number takes


class Outgoing(NamedTuple):
    """An entry that waits for a frame, with the new program or the tensor that travels with it."""

    entry: Entry
    program: NewProgram | None = None
    tensor: bytes | None = None

    @property
    def size_bytes(self) -> int:
        """An upper bound of the bytes that it takes in a frame."""
        brought_bytes = len(self.tensor or b"") + (len(self.program.raw) if self.program else 0)
        return 64 + _NUMBER_BYTES * _numbers_in(self.entry) + brought_bytes


class ClientStream:
    """The state of the stream; guarded by the session's lock."""

    def __init__(self, client: str) -> None:
        self._client = client
        self._waiting: deque[Outgoing] = deque()
        self._unacknowledged: deque[tuple[int, bytes]] = deque()
        self._last_number = 0
        self._received = 0  # the highest server frame that has arrived
        self._acknowledged = 0  # the highest server frame that we have acknowledged
        self._most_programs = 0  # the server's limit on known programs
        self._programs = 0  # known to the server once it has applied all frames
        self._instance = b""
        self.session_id = b""
        self.epoch = 0
        self.sent_bytes = 0

    @property
    def unacknowledged_frames(self) -> int:
        return len(self._unacknowledged)

    @property
    def waiting_entries(self) -> int:
        return len(self._waiting)

    def post(self, *entries: Outgoing) -> None:
        """Appends entries, which are sent in this order: all of them, or none if a signal handler raises."""
        self._waiting.extend(entries)

    def hello(self) -> bytes:
        """The first frame of a connection, for a new session or to resume one."""
        hello = wire.Hello(
            versions=[PROTOCOL_VERSION],
            client=self._client,
            session_id=self.session_id,
            server_instance=self._instance,
            epoch=self.epoch,
        )
        return wire.ClientFrame(acknowledged=self._received, hello=hello).SerializeToString()

    def goodbye(self) -> bytes:
        """The last frame of an orderly end."""
        return wire.ClientFrame(acknowledged=self._received, goodbye=wire.Goodbye()).SerializeToString()

    def next_frame(self) -> bytes | None:
        """The next numbered frame, or None if nothing waits."""
        if not self._waiting:
            return None
        taken = self._take()
        self._last_number += 1
        self._acknowledged = self._received
        raw = _encode(self._last_number, self._received, taken)
        self._unacknowledged.append((self._last_number, raw))
        self.sent_bytes += len(raw)
        return raw

    def heartbeat(self) -> bytes:
        """A frame without a number that only acknowledges the server's frames."""
        self._acknowledged = self._received
        return wire.ClientFrame(acknowledged=self._received).SerializeToString()

    @property
    def owes_acknowledgement(self) -> bool:
        return self._acknowledged < self._received

    def on_welcome(self, frame: wire.ServerFrame) -> list[bytes]:
        """Begins or resumes the session; returns the frames that must be sent again."""
        welcome = frame.welcome
        if welcome.version != PROTOCOL_VERSION:
            raise ProtocolError(f"the server speaks version {welcome.version}; this client {PROTOCOL_VERSION}")
        if self.session_id and (welcome.server_instance, welcome.session_id) != (self._instance, self.session_id):
            raise SessionLost("the server was restarted and no longer holds this session")
        self._instance = welcome.server_instance
        self.session_id = welcome.session_id
        self.epoch = welcome.epoch
        self._most_programs = welcome.limits.programs
        self._forget_until(frame.acknowledged)
        return [raw for _, raw in self._unacknowledged]

    def on_frame(self, frame: wire.ServerFrame) -> bool:
        """Notes a server frame. True if its results are new."""
        self._forget_until(frame.acknowledged)
        if frame.number == 0:
            return False
        if frame.number <= self._received:
            return False
        if frame.number != self._received + 1:
            raise ProtocolError(f"server frame {frame.number} follows {self._received}")
        self._received = frame.number
        return True

    def _forget_until(self, acknowledged: int) -> None:
        while self._unacknowledged and self._unacknowledged[0][0] <= acknowledged:
            self._unacknowledged.popleft()

    def _take(self) -> list[Outgoing]:
        taken: list[Outgoing] = []
        size_bytes, room = 0, self._most_programs - self._programs
        while self._waiting and size_bytes < FRAME_BYTES:
            outgoing = self._waiting[0]
            is_new = outgoing.program is not None
            if is_new and room <= 0 and taken:
                break
            room -= is_new
            size_bytes += outgoing.size_bytes
            self._programs += is_new - isinstance(outgoing.entry, Forget)
            taken.append(self._waiting.popleft())
        return taken


def _numbers_in(entry: Entry) -> int:
    """How many numbers the entry lists."""
    if isinstance(entry, Segment):
        return len(entry.inputs) + len(entry.scalars) + len(entry.starts) + len(entry.dying)
    return len(entry.handles) if isinstance(entry, Free) else 0


def _encode(number: int, acknowledged: int, taken: list[Outgoing]) -> bytes:
    """The bytes of a frame. Fields are set one by one, which takes half as long as the constructor with arguments."""
    frame = wire.ClientFrame()
    frame.number = number
    frame.acknowledged = acknowledged
    tensors: list[bytes] = []
    frame.bindings = frames.encode_entries([_entry(outgoing, tensors) for outgoing in taken])
    if tensors:
        frame.tensors.extend(tensors)
    new = [outgoing.program for outgoing in taken if outgoing.program is not None]
    if new:
        frame.programs = frames.encode_programs(new)
    return frame.SerializeToString()


def _entry(outgoing: Outgoing, tensors: list[bytes]) -> Entry:
    """The entry with the index of its tensor, which is added to `tensors`."""
    entry = outgoing.entry
    if outgoing.tensor is None:
        return entry
    assert isinstance(entry, Upload)
    tensors.append(outgoing.tensor)
    return entry._replace(tensor=len(tensors) - 1)
