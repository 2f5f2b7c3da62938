"""Reads and writes varints: numbers as protobuf encodes them, seven bits in each byte."""

from __future__ import annotations

_MOST_DIGITS = 10  # bytes of a 64-bit number


def append_varint(raw: bytearray, value: int) -> None:
    """Appends a number that is not negative."""
    while value > 0x7F:
        raw.append(value & 0x7F | 0x80)
        value >>= 7
    raw.append(value)


def read_varint(raw: bytes | memoryview, position: int, most_digits: int = _MOST_DIGITS) -> tuple[int, int]:
    """Returns the number at `position`, and the position behind it. Raises ValueError if it is cut off or too long."""
    value = 0
    for shift in range(0, 7 * most_digits, 7):
        if position >= len(raw):
            break
        byte = raw[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise ValueError("a number is truncated or too long")
