"""Parses a client's frame, in less than a millisecond whatever its bytes are.

Protobuf parses a message in one call, and takes time for each field, even for one of two bytes that is unknown or comes
again. A frame of 4 MiB could hold two million of them. So the fields of a long frame are counted first, until they are
too many.
"""

from __future__ import annotations

from google.protobuf.message import DecodeError

from fusewire_protos.errors import CaseError
from fusewire_protos.frames import MOST_TENSORS
from fusewire_protos.v1 import fusewire_pb2 as pb
from fusewire_protos.varints import read_varint

_SHORT_BYTES = 16 << 10  # a frame of so few bytes is parsed at once, whatever it holds
_MOST_FIELDS = MOST_TENSORS + 8
_MESSAGES = frozenset((pb.ClientFrame.HELLO_FIELD_NUMBER, pb.ClientFrame.GOODBYE_FIELD_NUMBER))
_VARINT, _LENGTH = 0, 2  # wire types of protobuf


def parse_frame(raw: bytes, message_bytes: int) -> pb.ClientFrame:
    """Parses a frame of a client. Raises CaseError if it is too large or malformed."""
    if len(raw) > message_bytes:
        raise CaseError("oversized_frame", f"a frame of {len(raw)} bytes; limits.message_bytes = {message_bytes}")
    try:
        if len(raw) > _SHORT_BYTES:
            _check_fields(raw)
        return pb.ClientFrame.FromString(raw)
    except (DecodeError, ValueError) as error:
        raise CaseError("undecodable_frame", str(error)) from None


def _check_fields(raw: bytes) -> None:
    """Raises CaseError if a frame has too many fields or a long message in it. Raises ValueError if it is malformed."""
    position = fields = 0
    while position < len(raw):
        fields += 1
        if fields > _MOST_FIELDS:
            raise CaseError("oversized_frame", f"a frame of more than {_MOST_FIELDS} fields")
        tag, position = read_varint(raw, position)
        number, wire_type = tag >> 3, tag & 7
        if wire_type not in {_VARINT, _LENGTH}:
            raise ValueError(f"field {number} has the wire type {wire_type}")
        value, position = read_varint(raw, position)
        if wire_type == _LENGTH:
            position += value
            if number in _MESSAGES and value > _SHORT_BYTES:
                raise CaseError("oversized_frame", f"field {number} of a frame has {value} bytes")
