"""Encodes and decodes the message `Chunk` without the copies that the generated class makes.

The data are the last of the two fields of `Chunk`, so its bytes are a short head followed by the data. A test checks
both functions against the generated class.

A chunk holds its offset in the value. The receiver counts the bytes that have arrived, and accepts only the chunk that
begins there.
"""

from __future__ import annotations

_OFFSET_TAG = 0x08  # field 1, varint
_DATA_TAG = 0x12  # field 2, length-delimited
_OFFSET_DIGITS, _LENGTH_DIGITS = 9, 5  # base 128


class ChunkOrderError(ValueError):
    """A chunk that does not begin where the previous one ended: out of order, repeated, or after a missing one."""


def encode_chunk(offset: int, data: memoryview | bytes) -> bytes:
    """The bytes of `Chunk(offset=offset, data=data)`; `data` is copied once."""
    return b"".join((_head(offset, len(data)), data))


def decode_chunk(raw: bytes, offset: int) -> memoryview:
    """The data of the chunk that begins at `offset`, as a view of `raw`.

    Raises ChunkOrderError if it begins elsewhere, ValueError if `raw` is no chunk.
    """
    given, position = _field(raw, 0, _OFFSET_TAG, _OFFSET_DIGITS)
    length, position = _field(raw, position, _DATA_TAG, _LENGTH_DIGITS)
    if position + length != len(raw):
        raise ValueError(
            f"a chunk of {len(raw)} bytes does not match its head: {position} bytes of head and {length} bytes of data"
        )
    if given != offset:
        raise ChunkOrderError(f"a chunk begins at byte {given} instead of byte {offset}")
    return memoryview(raw)[position:]


def _head(offset: int, length: int) -> bytes:
    """The bytes before the data. As in every protobuf message, a field of value 0 is left out."""
    head = bytearray()
    for tag, value in ((_OFFSET_TAG, offset), (_DATA_TAG, length)):
        if value:
            head.append(tag)
            _append_varint(head, value)
    return bytes(head)


def _append_varint(head: bytearray, value: int) -> None:
    while value > 0x7F:
        head.append(value & 0x7F | 0x80)
        value >>= 7
    head.append(value)


def _field(raw: bytes, position: int, tag: int, most_digits: int) -> tuple[int, int]:
    """The number in the field at `position`, 0 if the field is left out, and the position behind the field."""
    if position < len(raw) and raw[position] == tag:
        return _varint(raw, position + 1, most_digits)
    return 0, position


def _varint(raw: bytes, position: int, most_digits: int) -> tuple[int, int]:
    """The number at `position`, and the position behind it."""
    value = 0
    for shift in range(0, 7 * most_digits, 7):
        if position >= len(raw):
            break
        byte = raw[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise ValueError("a number in a chunk's head is truncated or too long")
