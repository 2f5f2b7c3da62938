"""The bodies of loops met before, and where one of them stands in a list of ops.

Mostly none does, and to search for one takes as long as to read it and the list. So a body is searched for where the
list has its *opening*, a number that its first ops make; the openings of all bodies are looked for at once. A body of
fewer ops than make an opening has none and is always searched for.
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
    """A body, and the first place where it stands."""

    place: int
    body: Integers


class KnownBodies:
    """The last so many that were added, each once."""

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
        """If it is there."""
        self._openings.pop(body.tobytes(), None)

    def find_in(self, signatures: Integers) -> Found | None:
        """The body that stands first; of those that begin at one place the longest."""
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
        """The openings of bodies that `signatures` has."""
        known = np.array(sorted({opening for opening in self._openings.values() if opening is not None}), np.int64)
        if not len(known) or len(signatures) < _OPENING_OPS:
            return set()
        openings = _openings_of(signatures)
        nearest = known[np.searchsorted(known, openings, side="right") - 1]
        return set(openings[openings == nearest].tolist())


def place_of(body: bytes, signatures: bytes) -> int | None:
    """The first place where a body stands."""
    at = signatures.find(body)
    while at != -1 and at % _ITEM_BYTES:
        at = signatures.find(body, at + 1)
    return None if at == -1 else at // _ITEM_BYTES


def _opening_of(body: Integers) -> int | None:
    return int(_openings_of(body[:_OPENING_OPS])[0]) if len(body) >= _OPENING_OPS else None


def _openings_of(signatures: Integers) -> Integers:
    """For each place the number that the ops from there on make. Others hardly ever make the same; sums wrap."""
    openings: Integers = np.correlate(signatures, _WEIGHTS, "valid")
    return openings
