"""A frame of a client as its parts, from which its bytes are made. A part may be malformed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgpack

from fusewire_protos import frames
from fusewire_protos.frames import Entry, NewProgram, Segment
from fusewire_protos.v1 import fusewire_pb2 as pb


class Draft(NamedTuple):
    """The parts of a frame. `further` are bytes behind them, which protobuf reads as further fields."""

    programs: bytes = b""
    bindings: bytes = b""
    tensors: Sequence[bytes] = ()
    further: bytes = b""
    is_numbered: bool = True
    is_sent_again: bool = False  # has the number of the frame before it
    segments: int = 0  # that take credit


def drafted(
    *entries: Entry, programs: Sequence[NewProgram] = (), tensors: Sequence[bytes] = (), further: bytes = b""
) -> Draft:
    """A frame of well-formed entries."""
    numbered = frames.encode_programs(programs) if programs else b""
    bindings = frames.encode_entries(entries) if entries else b""
    segments = sum(isinstance(entry, Segment) for entry in entries)
    return Draft(numbered, bindings, tensors, further, segments=segments)


def listed(items: Sequence[Any]) -> Draft:
    """A frame whose entries are any items."""
    return Draft(bindings=msgpack.packb(items))


def bytes_of(draft: Draft, number: int, acknowledged: int) -> bytes:
    """The bytes of a frame. `number` is the number that the next frame has."""
    own = number - draft.is_sent_again if draft.is_numbered else 0
    frame = pb.ClientFrame(
        number=own,
        acknowledged=acknowledged,
        programs=draft.programs,
        bindings=draft.bindings,
        tensors=draft.tensors,
    )
    return frame.SerializeToString() + draft.further
