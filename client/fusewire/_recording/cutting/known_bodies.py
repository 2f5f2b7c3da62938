"""Remembers the bodies of earlier loops, and finds one of them in a list of ops.

Comparing every body with the list would be slow, and usually no body occurs in it. So each body has an *opening*: a
hash of its first eight ops. One pass over the list finds the openings that occur in it, and only bodies with such an
opening are compared. A body of fewer than eight ops has no opening and is always compared.
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
    """A body that occurs in a list of ops, and the index at which it first begins there."""

    place: int
    body: Integers


class KnownBodies:
    """Holds the `most` bodies that were added last, each once."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._openings: OrderedDict[bytes, int | None] = OrderedDict()  # the bytes of a body -> its opening

    def add(self, body: Integers) -> None:
        raw = body.tobytes()
        if raw not in self._openings:
            self._openings[raw] = _opening_of(body)
        self._openings.move_to_end(raw)
        if len(self._openings) > self._most:
            self._openings.popitem(last=False)

    def drop(self, body: Integers) -> None:
        """Forgets a body. Does nothing if the body is not known."""
        self._openings.pop(body.tobytes(), None)

    def find_in(self, signatures: Integers) -> Found | None:
        """Returns the known body that begins first in `signatures`: the longest, if several begin at the same op."""
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
        """Returns the openings of known bodies that occur in `signatures`."""
        known = np.array(sorted({opening for opening in self._openings.values() if opening is not None}), np.int64)
        if not len(known) or len(signatures) < _OPENING_OPS:
            return set()
        openings = openings_of(signatures)
        nearest = known[np.searchsorted(known, openings, side="right") - 1]
        return set(openings[openings == nearest].tolist())


def place_of(body: bytes, signatures: bytes) -> int | None:
    """Returns the index of the first occurrence of a body, or None. Both arguments are the bytes of int64 arrays."""
    at = signatures.find(body)
    while at != -1 and at % _ITEM_BYTES:
        at = signatures.find(body, at + 1)
    return None if at == -1 else at // _ITEM_BYTES


def _opening_of(body: Integers) -> int | None:
    return int(openings_of(body[:_OPENING_OPS])[0]) if len(body) >= _OPENING_OPS else None


def openings_of(signatures: Integers) -> Integers:
    """Returns for each index the hash of the eight ops that begin there. The hash is a weighted sum modulo 2^64."""
    openings: Integers = np.correlate(signatures, _WEIGHTS, "valid")
    return openings
