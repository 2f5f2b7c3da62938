"""Encodes and decodes the message `Chunk` without the copies that the generated class makes.

A large value is sent as a sequence of chunks. `Chunk` has two fields, the offset and the data, and the data come last.
So an encoded chunk is a short head followed by the data. A test compares `encode_chunk` and `decode_chunk` with the
generated class.

The offset of a chunk is the position of its first byte in the value. The receiver counts the bytes that have arrived,
and accepts a chunk only if its offset is equal to this count.
"""

from __future__ import annotations

from fusewire_protos.varints import append_varint, read_varint

_OFFSET_TAG = 0x08  # field 1, varint
_DATA_TAG = 0x12  # field 2, length-delimited
_OFFSET_DIGITS, _LENGTH_DIGITS = 9, 5  # the most bytes of a varint: 7 bits of the number in each


class ChunkOrderError(ValueError):
    """Says that a chunk does not begin where the previous chunk ended: a chunk is missing, repeated or out of order."""


def encode_chunk(offset: int, data: memoryview | bytes) -> bytes:
    """Returns the bytes of `Chunk(offset=offset, data=data)`. `data` is copied only once."""
    return b"".join((chunk_head(offset, len(data)), data))


def decode_chunk(raw: bytes, offset: int) -> memoryview:
    """Returns the data of a chunk as a view of `raw`; `offset` is the offset that the chunk must have.

    Raises ChunkOrderError if the chunk has another offset, and ValueError if `raw` is no chunk.
    """
    given, position = decode_head(raw, len(raw))
    check_order(given, offset)
    return memoryview(raw)[position:]


def decode_head(raw: bytes | memoryview, chunk_bytes: int) -> tuple[int, int]:
    """Returns the offset of a chunk of `chunk_bytes`, and where its data begin. `raw` is the beginning of the chunk.

    Raises ValueError if it is no chunk.
    """
    offset, position = _field(raw, 0, _OFFSET_TAG, _OFFSET_DIGITS)
    length, position = _field(raw, position, _DATA_TAG, _LENGTH_DIGITS)
    if position + length != chunk_bytes:
        raise ValueError(
            f"a chunk of {chunk_bytes} bytes does not match its head: {position} bytes of head and {length} of data"
        )
    return offset, position


def check_order(given: int, offset: int) -> None:
    """Raises ChunkOrderError if a chunk has another offset than it must have."""
    if given != offset:
        raise ChunkOrderError(f"a chunk begins at byte {given} instead of byte {offset}")


def chunk_head(offset: int, length: int) -> bytes:
    """Returns the bytes before the data. A field of value 0 is left out, as in every protobuf message."""
    head = bytearray()
    for tag, value in ((_OFFSET_TAG, offset), (_DATA_TAG, length)):
        if value:
            head.append(tag)
            append_varint(head, value)
    return bytes(head)


def _field(raw: bytes | memoryview, position: int, tag: int, most_digits: int) -> tuple[int, int]:
    """Returns the number in the field at `position`, and the position behind the field.

    The number is 0 if the field is left out.
    """
    if position >= len(raw) or raw[position] != tag:
        return 0, position
    try:
        return read_varint(raw, position + 1, most_digits)
    except ValueError as error:
        raise ValueError(f"the head of a chunk is malformed: {error}") from None
