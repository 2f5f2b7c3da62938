"""The programs of a session with their numbers on the server, bounded: the least recently used is forgotten first."""

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
    """Identifies a program. A fragment has another key than a whole body of the same structure."""

    structure: bytes
    live: tuple[int, ...]
    is_fragment: bool


@dataclass
class _Entry:
    encoded: EncodedProgram
    number: int | None = None  # None before its first use


class Numbered(NamedTuple):
    """The number of a program. If it `is_new`, the program is sent too, and the `forgotten` numbers become free."""

    number: int
    is_new: bool
    forgotten: tuple[int, ...]


class _Latest:
    """The `most` items that were added last, each once."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._items: OrderedDict[bytes, None] = OrderedDict()

    def add(self, item: bytes) -> None:
        """May be called again if interrupted."""
        self._items[item] = None
        self._items.move_to_end(item)
        while len(self._items) > self._most:
            self._items.popitem(last=False)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._items)


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
        """The number for a use of a kept program. Changes nothing before `take` is called."""
        entry = self._entries[key]
        if entry.number is not None:
            return Numbered(entry.number, is_new=False, forgotten=())
        return Numbered(self._next_number, is_new=True, forgotten=tuple(self._pushed_out_by(key)))

    def take(self, key: ProgramKey, numbered: Numbered) -> None:
        """Notes the use. May be called again if interrupted."""
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
        """The digests of the programs numbered last, sorted, in hexadecimal."""
        return tuple(sorted(each.hex() for each in self._digests[are_fragments]))

    def _pushed_out_by(self, key: ProgramKey) -> Iterator[int]:
        surplus = max(len(self._entries) - self._most, 0)
        others = (entry for other, entry in self._entries.items() if other != key)
        for entry in islice(others, surplus):
            if entry.number is not None:
                yield entry.number
