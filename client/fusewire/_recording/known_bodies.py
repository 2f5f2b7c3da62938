"""Remembers the bodies of earlier loops, and finds one of them in a list of ops.

Comparing every body with the list is slow, and mostly none matches. So each body has an *opening*: a hash of its first
eight ops. One pass over the list finds the openings that occur in it, and only bodies with such an opening are
compared. A body of fewer than eight ops has no opening and is always compared.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

import numpy as np

from fusewire._recording.tape import Integers

_OPENING_OPS = 8
_WEIGHTS = np.cumprod(np.full(_OPENING_OPS, 0x9E3779B97F4A7C15, np.uint64)).view(np.int64)
_ITEM_BYTES = np.dtype(np.int64).itemsize


class Found(NamedTuple):
    """A body, and the index of its first occurrence."""

    place: int
    body: Integers


class KnownBodies:
    """The `most` bodies that were added last, each once."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._openings: OrderedDict[bytes, int | None] = OrderedDict()  # by the bytes of the body

    def add(self, body: Integers) -> None:
        raw = body.tobytes()
        if raw not in self._openings:
            self._openings[raw] = _opening_of(body)
        self._openings.move_to_end(raw)
        if len(self._openings) > self._most:
            self._openings.popitem(last=False)

    def drop(self, body: Integers) -> None:
        """Does nothing if the body is not known."""
        self._openings.pop(body.tobytes(), None)

    def find_in(self, signatures: Integers) -> Found | None:
        """The body that occurs first in `signatures`; among those that begin at the same op, the longest."""
        raw, openings = signatures.tobytes(), self._openings_in(signatures)
        found = [
            (place, -len(body), body)
            for body, opening in self._openings.items()
            if (opening is None or opening in openings) and (place := place_of(body, raw)) is not None
        ]
        if not found:
            return None
        place, _, body = min(found)
        return Found(place, np.frombuffer(body, np.int64))

    def _openings_in(self, signatures: Integers) -> set[int]:
        """The openings of known bodies that occur in `signatures`."""
        known = np.array(sorted({opening for opening in self._openings.values() if opening is not None}), np.int64)
        if not len(known) or len(signatures) < _OPENING_OPS:
            return set()
        openings = _openings_of(signatures)
        nearest = known[np.searchsorted(known, openings, side="right") - 1]
        return set(openings[openings == nearest].tolist())


def place_of(body: bytes, signatures: bytes) -> int | None:
    """The index of the first occurrence of a body. Both arguments are the bytes of int64 arrays."""
    at = signatures.find(body)
    while at != -1 and at % _ITEM_BYTES:
        at = signatures.find(body, at + 1)
    return None if at == -1 else at // _ITEM_BYTES


def _opening_of(body: Integers) -> int | None:
    return int(_openings_of(body[:_OPENING_OPS])[0]) if len(body) >= _OPENING_OPS else None


def _openings_of(signatures: Integers) -> Integers:
    """The hash of the eight ops from each index on, a weighted sum modulo 2^64."""
    openings: Integers = np.correlate(signatures, _WEIGHTS, "valid")
    return openings
