"""Keeps what a session reads in each step: the values while there is room, and digests of the values after that."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Read = Array | bytes | None  # a value, the digest of a value, or None for a step that reads nothing

_DIGEST_BYTES = 16


class Reads:
    """What a session has read, one entry a step. The values that it holds take at most `room_bytes`."""

    def __init__(self, room_bytes: int) -> None:
        self.kept: list[Read] = []
        self._room_bytes = room_bytes

    def add(self, value: Array | None) -> None:
        if value is None or value.nbytes <= self._room_bytes:
            self._room_bytes -= 0 if value is None else value.nbytes
            self.kept.append(value)
        else:
            self.kept.append(digest_of(value))


def digest_of(value: Array) -> bytes:
    """Returns 16 bytes, which differ between values that differ in a bit, in shape or in dtype."""
    contents = np.ascontiguousarray(value)
    spec = f"{value.dtype.str}{value.shape}".encode()
    return hashlib.blake2b(contents.tobytes(), digest_size=_DIGEST_BYTES, key=spec[:64]).digest()
