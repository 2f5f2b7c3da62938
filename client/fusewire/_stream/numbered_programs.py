"""The programs a session has numbered, and what it takes to use one again. Bounded: the least used is forgotten."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from fusewire._stream.encoded_programs import EncodedProgram
from fusewire_protos.program_codec import digest

MOST_DIGESTS = 1024  # of programs, and as many of fragments


class ProgramKey(NamedTuple):
    """What tells programs apart. A fragment and a program of the same form are two, for they are treated otherwise."""

    structure: bytes
    live: tuple[int, ...]
    is_fragment: bool


@dataclass
class _Entry:
    encoded: EncodedProgram
    number: int | None = None  # from its first use on


class Numbered(NamedTuple):
    """The number of a program; on its first use it `is_new`, and may push out the `forgotten` numbers."""

    number: int
    is_new: bool
    forgotten: tuple[int, ...]


class _Latest:
    """The last so many of the things that were added, each once."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._things: OrderedDict[bytes, None] = OrderedDict()

    def add(self, thing: bytes) -> None:
        """May be begun again."""
        self._things[thing] = None
        self._things.move_to_end(thing)
        while len(self._things) > self._most:
            self._things.popitem(last=False)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._things)


class Programs:
    """Guarded by the session's lock."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._entries: OrderedDict[ProgramKey, _Entry] = OrderedDict()
        self._next_number = 0
        self._digests = {False: _Latest(MOST_DIGESTS), True: _Latest(MOST_DIGESTS)}  # by is_fragment

    def encoded(self, key: ProgramKey) -> EncodedProgram | None:
        entry = self._entries.get(key)
        return None if entry is None else entry.encoded

    def keep(self, key: ProgramKey, encoded: EncodedProgram) -> None:
        if key not in self._entries:
            self._entries[key] = _Entry(encoded)

    def number(self, key: ProgramKey) -> Numbered:
        """For a use of a kept program. Nothing has changed until it is taken."""
        entry = self._entries[key]
        if entry.number is not None:
            return Numbered(entry.number, is_new=False, forgotten=())
        return Numbered(self._next_number, is_new=True, forgotten=tuple(self._pushed_out_by(key)))

    def take(self, key: ProgramKey, numbered: Numbered) -> None:
        """Takes note of the use. May be begun again."""
        entry = self._entries[key]
        self._entries.move_to_end(key)
        if not numbered.is_new:
            return
        entry.number = numbered.number
        self._next_number = numbered.number + 1
        self._digests[key.is_fragment].add(digest(entry.encoded.raw))
        while len(self._entries) > self._most:
            self._entries.popitem(last=False)

    def digests(self, *, are_fragments: bool) -> tuple[str, ...]:
        """Of the programs numbered last, sorted, in hexadecimal."""
        return tuple(sorted(each.hex() for each in self._digests[are_fragments]))

    def _pushed_out_by(self, key: ProgramKey) -> Iterator[int]:
        surplus = max(len(self._entries) - self._most, 0)
        others = (entry for other, entry in self._entries.items() if other != key)
        for entry in islice(others, surplus):
            if entry.number is not None:
                yield entry.number
