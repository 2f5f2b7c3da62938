"""Encodes and decodes the parts of a local call: one connection of a Unix socket, which carries what a gRPC call does.

A part is a head (the length of the rest in 4 bytes, little-endian, then the kind in one byte) and the rest. The caller
sends OPEN, then messages, then perhaps END. The other side sends perhaps METADATA, then messages, then STATUS. Both may
send PING at any time. Pure.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple

import msgpack

from fusewire_protos.errors import CaseError
from fusewire_protos.unpacking import unpack

Metadata = tuple[tuple[str, str], ...]

NAME_PREFIX = "fusewire-"  # of the sockets of servers: a client connects to no other

_HEAD = struct.Struct("<IB")
_MOST_LISTED = 256  # pairs of metadata
_MOST_SHORT_BYTES = 64 << 10  # of a part that is no message, and of a message that is not received straight into place
PLACING_BYTES = 32  # the beginning of a message, by which a receiver may say where its bytes belong


class PartKind(IntEnum):
    """Names the kind of a part."""

    MESSAGE = 0
    OPEN = 1
    METADATA = 2
    END = 3  # the caller sends no more messages
    STATUS = 4  # the call is over
    PING = 5


class Part(NamedTuple):
    """A kind, and the bytes that follow the head.

    `placed` is the memory to which a message was received if a `Place` gave it. Then there is no `raw`.
    """

    kind: PartKind
    raw: bytes
    placed: memoryview | None = None


# Takes the beginning of a long message, and how many bytes that has. Returns how many of them are to be left out, and
# the memory for all others; or None if the message has no place of its own.
Place = Callable[[memoryview, int], tuple[int, memoryview] | None]


class Opening(NamedTuple):
    """The first part of a call.

    `secret` shows that the caller may make local calls. `peer` is where the client is, as the caller tells it.
    """

    method: str
    metadata: Metadata
    peer: str
    secret: bytes


class Status(NamedTuple):
    """The end of a call: the number of a gRPC status code, and its details."""

    code: int
    details: str


class PartReader:
    """Finds the parts in a stream of bytes. A part may have at most `most_bytes`.

    While a long message is under way, `rest` is memory for what is missing of it: who receives bytes to it calls
    `filled` instead of `feed`. `place` may be set to have long messages received where they belong.
    """

    def __init__(self, most_bytes: int) -> None:
        self.place: Place | None = None
        self.rest: memoryview | None = None
        self._most_bytes = max(most_bytes, _MOST_SHORT_BYTES)
        self._unread = bytearray()  # the beginning of a part
        self._long = memoryview(b"")  # all bytes of the message of `rest`
        self._is_placed = False

    @property
    def held_bytes(self) -> int:
        """The bytes that wait here for the rest of their part."""
        return len(self._unread) + (0 if self.rest is None else len(self._long) - len(self.rest))

    def feed(self, data: bytes, most_parts: int = sys.maxsize) -> list[Part]:
        """Returns the parts that end in `data`, which follows what was fed before. Raises CaseError.

        Returns at most `most_parts`, and the others when it is called again.
        """
        parts: list[Part] = []
        start = 0
        if self.rest is not None:
            start = min(len(self.rest), len(data))
            self.rest[:start] = data[:start]
            parts += self.filled(start)
        elif self._unread:
            self._unread += data
            if not self._is_whole():
                self._begin_long()
                return []
            data, self._unread = bytes(self._unread), bytearray()
        end = len(data)
        while end - start >= _HEAD.size and len(parts) < most_parts:
            length, kind = self._head(data, start)
            following = start + _HEAD.size + length
            if following > end:
                break
            parts.append(Part(kind, data[start + _HEAD.size : following]))
            start = following
            if kind is PartKind.END:
                self.place = None  # what follows nevertheless has none
        if start < end:
            self._unread += data[start:]
            self._begin_long()
        return parts

    def filled(self, count: int) -> list[Part]:
        """Takes note that the first `count` bytes of `rest` have come. Returns the message if it is whole now."""
        assert self.rest is not None, "a long message is under way"
        self.rest = self.rest[count:]
        if self.rest:
            return []
        whole, self._long, self.rest = self._long, memoryview(b""), None
        return [Part(PartKind.MESSAGE, b"", whole) if self._is_placed else Part(PartKind.MESSAGE, bytes(whole))]

    def place_no_more(self) -> None:
        """Writes no more to memory that `place` gave."""
        self.place = None
        if self.rest is not None and self._is_placed:
            self._long, self.rest = memoryview(b""), memoryview(bytearray(len(self.rest)))

    def _begin_long(self) -> None:
        """Has the rest of an unread message received to memory of its own, if it is long."""
        unread = self._unread
        if len(unread) < _HEAD.size + PLACING_BYTES or self._is_whole():
            return
        length, kind = self._head(unread, 0)
        if kind is not PartKind.MESSAGE or length <= _MOST_SHORT_BYTES:
            return
        self._unread = bytearray()
        come = memoryview(unread)[_HEAD.size :]
        place = None if self.place is None else self.place(come, length)
        self._is_placed = place is not None
        left_out, self._long = place or (0, memoryview(bytearray(length)))
        count = len(come) - left_out
        self._long[:count] = come[left_out:]
        self.rest = self._long[count:]

    def _is_whole(self) -> bool:
        if len(self._unread) < _HEAD.size:
            return False
        length, _ = self._head(self._unread, 0)
        return len(self._unread) >= _HEAD.size + length

    def _head(self, data: bytes | bytearray, start: int) -> tuple[int, PartKind]:
        length, number = _HEAD.unpack_from(data, start)
        kind = _KINDS.get(number)
        if kind is None:
            raise CaseError("undecodable_frame", f"a part of kind {number}")
        most_bytes = self._most_bytes if kind is PartKind.MESSAGE else _MOST_SHORT_BYTES
        if length > most_bytes:
            raise CaseError("oversized_frame", f"a part of {length} bytes; the most is {most_bytes}")
        return length, kind


def head_of(kind: PartKind, length: int) -> bytes:
    """Returns the head of a part with `length` bytes after the head."""
    return _HEAD.pack(length, kind)


def encode_opening(opening: Opening) -> bytes:
    """Returns the bytes of an OPEN part."""
    method, metadata, peer, secret = opening
    return _packed(method.encode(), _encoded(metadata), peer.encode(), secret)


def decode_opening(raw: bytes) -> Opening:
    """Reads an OPEN part. Raises CaseError."""
    method, metadata, peer, secret = _listed(raw, bytes, tuple, bytes, bytes)
    return Opening(_text(method), _decoded(metadata), _text(peer), secret)


def encode_metadata(metadata: Metadata) -> bytes:
    """Returns the bytes of a METADATA part."""
    return _packed(_encoded(metadata))


def decode_metadata(raw: bytes) -> Metadata:
    """Reads a METADATA part. Raises CaseError."""
    (metadata,) = _listed(raw, tuple)
    return _decoded(metadata)


def encode_status(status: Status) -> bytes:
    """Returns the bytes of a STATUS part."""
    return _packed(status.code, status.details.encode())


def decode_status(raw: bytes) -> Status:
    """Reads a STATUS part. Raises CaseError."""
    code, details = _listed(raw, int, bytes)
    return Status(code, _text(details))


def _packed(*items: Any) -> bytes:
    raw: bytes = msgpack.packb(items)
    return raw


def _listed(raw: bytes, *kinds: type) -> tuple[Any, ...]:
    items = unpack(raw, longest_array=_MOST_LISTED)
    if type(items) is not tuple or [type(item) for item in items] != [*kinds]:
        raise CaseError("undecodable_frame", "a part does not hold what its kind says")
    return items


def _encoded(metadata: Metadata) -> list[tuple[bytes, bytes]]:
    return [(key.encode(), value.encode()) for key, value in metadata]


def _decoded(items: tuple[Any, ...]) -> Metadata:
    for item in items:
        if type(item) is not tuple or [type(each) for each in item] != [bytes, bytes]:
            raise CaseError("undecodable_frame", "metadata are not pairs of texts")
    return tuple([(_text(key), _text(value)) for key, value in items])


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise CaseError("undecodable_frame", "a text is not UTF-8") from None


_KINDS = {kind.value: kind for kind in PartKind}
