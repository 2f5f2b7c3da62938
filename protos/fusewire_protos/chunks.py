"""A bulk chunk as bytes, without the copies that building a message makes.

`Chunk` has one field, so its bytes are a short head followed by the data. Both functions below produce and read
exactly what the generated class would; a test holds them to it.
"""

from __future__ import annotations

_TAG = 0x0A  # field 1, length-delimited


def encode_chunk(data: memoryview | bytes) -> bytes:
    """The bytes of `Chunk(data=data)`; `data` is copied once."""
    return b"".join((_head(len(data)), data))


def decode_chunk(raw: bytes) -> memoryview:
    """The data of a chunk, as a view of `raw`. Raises ValueError if `raw` is no such message."""
    if not raw:
        return memoryview(raw)
    if raw[0] != _TAG:
        raise ValueError("a chunk holds one field of bytes")
    length, start = _varint(raw, 1)
    if start + length != len(raw):
        raise ValueError(f"a chunk of {len(raw)} bytes declares {length} of data after {start} of head")
    return memoryview(raw)[start:]


def _head(length: int) -> bytes:
    head = bytearray((_TAG,))
    while length > 0x7F:
        head.append(length & 0x7F | 0x80)
        length >>= 7
    head.append(length)
    return bytes(head)


def _varint(raw: bytes, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 35, 7):
        if position >= len(raw):
            break
        byte = raw[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise ValueError("a chunk's length is cut off or too long")
