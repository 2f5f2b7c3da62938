"""Makes and reads the frames of one session: numbers them, acknowledges them, and sends them again after a cut.

The client numbers its frames 1, 2, 3, … and the server acknowledges them. The server's numbered frames carry results.
The client acknowledges these frames, and drops a frame that arrives twice. If the connection is lost, the session goes
on over a new one: after the server's welcome both send again what the other has not acknowledged.

So the client keeps each frame until the server acknowledges it. A server acknowledges at the latest every 16 frames
that it has read, and a frame is at most 1 MiB long, or one entry with what it brings along. So the frames kept are at
most 16 MiB and what the connection holds on its way to the server.

The server limits how many programs a session may register. The server first registers all new programs of a frame and
then applies the frame's entries. An entry may make the server forget an older program, but that makes room only for
the next frame. So the client ends a frame before a new program that would exceed the limit.

A signal handler may raise wherever a user's thread makes a frame. So a frame is made all at once or not at all: a
statement without a call is not interrupted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from fusewire._errors import ProtocolError
from fusewire_protos import frames
from fusewire_protos.frames import (
    MOST_TENSORS,
    PROTOCOL_VERSION,
    Entry,
    Forget,
    NewProgram,
    Segment,
    Upload,
)
from fusewire_protos.v1 import fusewire_pb2 as wire

FRAME_BYTES = 1 << 20  # a frame takes no further entry that would make it longer
_FRAME_HEAD_BYTES = 64  # more than a frame has beside its entries
# More than an entry takes beside its own bytes, its program and its tensor; so a frame has fewer than MAX_ENTRIES.
_ENTRY_HEAD_BYTES = 64


class Outgoing(NamedTuple):
    """An entry that waits for a frame, with the new program or the uploaded bytes (`tensor`) that it brings along."""

    entry: Entry
    program: NewProgram | None = None
    tensor: bytes | None = None


class _Contents(NamedTuple):
    """What a frame carries. `programs` is how many programs the server knows after it."""

    entries: list[bytes]
    tensors: list[bytes]
    new: list[NewProgram]
    programs: int


class Wish(NamedTuple):
    """What a new session tells: the device that it asks for and programs it may run, for a server with several devices,
    and what it is called.
    """

    device: int | None = None
    programs: tuple[bytes, ...] = ()  # digests
    name: str = ""
    labels: Mapping[str, str] = MappingProxyType({})


NO_WISH = Wish()


class ClientStream:
    """The frames of one session, as the client sees them. The session's lock guards this object."""

    def __init__(self, client: str, wish: Wish = NO_WISH) -> None:
        self._client = client
        self._wish = wish
        self._waiting: list[Outgoing] = []
        self._last_number = 0
        self._unacknowledged: dict[int, bytes] = {}  # our last frames by number, which the server may not have
        self._again: deque[bytes] = deque()  # those of them that this connection is still to carry
        self._received = 0  # the highest server frame that has arrived
        self._acknowledged = 0  # the highest server frame that we have acknowledged
        self._most_programs = 0  # the server's limit on known programs
        self._programs = 0  # how many programs the server knows after it has applied all frames made so far
        self._most_bytes = FRAME_BYTES  # of a frame of several entries
        self._server_instance = b""
        self._epoch = 0  # of the connection that was welcomed last
        self.is_connected = False  # whether the server has welcomed us on a connection that has not been lost
        self.session_id = b""
        self.sent_bytes = 0  # of frames, each counted once
        # Is told the number, the bytes and the segments' bases of each frame, while a profile is on.
        self.on_made: Callable[[int, int, list[int]], None] | None = None

    @property
    def unacknowledged_frames(self) -> int:
        return len(self._unacknowledged)

    @property
    def waiting_entries(self) -> int:
        return len(self._waiting)

    def post(self, *entries: Outgoing) -> None:
        """Appends entries, which are sent in this order. If a signal handler raises here, all or none are appended."""
        self._waiting.extend(entries)

    def post_at(self, place: int, entries: Sequence[Outgoing]) -> None:
        """Posts entries, unless they are there already, behind the first `place` ones that wait."""
        if not any(each is entry for each in self._waiting[place:] for entry in entries):
            self._waiting.extend(entries)

    def hello(self) -> bytes:
        """Returns the first frame of a connection. It asks for a new session, or for the one that was welcomed."""
        self.is_connected = False
        hello = wire.Hello(
            versions=[PROTOCOL_VERSION],
            client=self._client,
            session_id=self.session_id,
            server_instance=self._server_instance,
            epoch=self._epoch,
        )
        if not self.session_id:
            hello.programs.extend(self._wish.programs)
            hello.name = self._wish.name
            hello.labels.update(self._wish.labels)
            if self._wish.device is not None:
                hello.device = self._wish.device
        return wire.ClientFrame(acknowledged=self._received, hello=hello).SerializeToString()

    def goodbye(self) -> bytes:
        """Returns the last frame of a session that the client closes."""
        return wire.ClientFrame(acknowledged=self._received, goodbye=wire.Goodbye()).SerializeToString()

    def next_frame(self) -> bytes | None:
        """Returns the next frame to be sent again, or else makes one of entries that wait.

        Returns None if there is nothing to be sent, or no connection.
        """
        if not self.is_connected:
            return None
        if self._again:
            return self._again.popleft()
        if not self._waiting:
            return None
        contents = self._next_contents()
        count, number = len(contents.entries), self._last_number + 1
        taken = self._waiting[:count]
        raw = _encode(number, self._received, contents)
        made = (), raw, number, contents.programs
        self._waiting[:count], self._unacknowledged[number], self._last_number, self._programs = made
        self._acknowledged = self._received
        self.sent_bytes += len(raw)
        if self.on_made is not None:
            self.on_made(number, len(raw), [each.entry.base for each in taken if isinstance(each.entry, Segment)])
        return raw

    def heartbeat(self) -> bytes:
        """Returns a frame without a number, which only acknowledges the server's frames."""
        self._acknowledged = self._received
        return wire.ClientFrame(acknowledged=self._received).SerializeToString()

    @property
    def owes_acknowledgement(self) -> bool:
        return self._acknowledged < self._received

    def on_welcome(self, welcome: wire.Welcome, acknowledged: int = 0) -> None:
        """Begins the session, or resumes it with the frames that follow the `acknowledged` one."""
        if welcome.version != PROTOCOL_VERSION:
            raise ProtocolError(f"the server speaks version {welcome.version}; this client {PROTOCOL_VERSION}")
        if self.session_id not in {b"", welcome.session_id}:
            raise ProtocolError("the server welcomes us to another session than the one that was to be resumed")
        self._drop_acknowledged(acknowledged)
        self._again = deque(self._unacknowledged.values())
        self.is_connected = True
        self._server_instance, self._epoch = welcome.server_instance, welcome.epoch
        self.session_id = welcome.session_id
        self._most_programs = welcome.limits.programs
        self._most_bytes = min(FRAME_BYTES, welcome.limits.message_bytes)

    def on_frame(self, frame: wire.ServerFrame) -> bool:
        """Looks at a server frame. Returns whether it carries results that have not been taken: then `took` follows."""
        self._drop_acknowledged(frame.acknowledged)
        if frame.number <= self._received:
            return False
        if frame.number != self._received + 1:
            raise ProtocolError(f"server frame {frame.number} follows {self._received}")
        return True

    def took(self, frame: wire.ServerFrame) -> None:
        """Notes that all results of a server frame have been taken."""
        self._received = frame.number

    def _drop_acknowledged(self, number: int) -> None:
        first = self._last_number + 1 - len(self._unacknowledged)
        for each in range(first, min(number, self._last_number) + 1):
            del self._unacknowledged[each]

    def _next_contents(self) -> _Contents:
        """Returns what the next frame carries: the first entries that wait, as many as it has room for."""
        encoded: list[bytes] = []
        tensors: list[bytes] = []
        new: list[NewProgram] = []
        size_bytes, forgotten = _FRAME_HEAD_BYTES, 0
        most_new = self._most_programs - self._programs  # before any is forgotten
        for entry, program, tensor in self._waiting:
            raw = frames.encode_entry(entry if tensor is None else _with_tensor(entry, len(tensors)))
            size_bytes += _ENTRY_HEAD_BYTES + len(raw)
            has_room = True
            if tensor is not None:
                size_bytes, has_room = size_bytes + len(tensor), len(tensors) < MOST_TENSORS
            elif program is not None:
                size_bytes, has_room = size_bytes + len(program.raw), len(new) < most_new
            if encoded and (size_bytes > self._most_bytes or not has_room):
                break
            encoded.append(raw)
            if tensor is not None:
                tensors.append(tensor)
            elif program is not None:
                new.append(program)
            elif type(entry) is Forget:
                forgotten += 1
        return _Contents(encoded, tensors, new, self._programs + len(new) - forgotten)


def _with_tensor(entry: Entry, index: int) -> Upload:
    """Returns the entry of an upload whose bytes are the tensor with this index."""
    assert isinstance(entry, Upload)
    return Upload(entry.handle, entry.spec, index)


def _encode(number: int, acknowledged: int, contents: _Contents) -> bytes:
    """Returns the bytes of a frame.

    The fields are set one by one, because that takes half as long as passing them to the constructor.
    """
    frame = wire.ClientFrame()
    frame.number = number
    frame.acknowledged = acknowledged
    frame.bindings = frames.list_entries(contents.entries)
    if contents.tensors:
        frame.tensors.extend(contents.tensors)
    if contents.new:
        frame.programs = frames.encode_programs(contents.new)
    return frame.SerializeToString()
