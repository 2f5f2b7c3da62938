"""Keeps the programs of a session, and the number under which the server knows each program.

The count of the programs is limited. Beyond the limit, client and server forget the programs that were used least
recently.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from fusewire._stream.encoded_programs import EncodedProgram
from fusewire_protos.programs.codec import digest

MOST_DIGESTS = 1024  # the most digests of whole bodies that are kept, and also the most digests of fragments


class ProgramKey(NamedTuple):
    """Identifies a program. A fragment and a whole body of the same structure have different keys."""

    structure: bytes
    live: tuple[int, ...]
    is_fragment: bool
    carried: tuple[tuple[int, int], ...] = ()


@dataclass
class _Entry:
    encoded: EncodedProgram
    numbered: Numbered | None = None  # None before the program's first use
    first: int = 0  # of the last use: the handle of its first op, and how many ops it had
    ops: int = 0


class Use(NamedTuple):
    """The last use of a program: the program's number, the handle of the first op, and how many ops were sent.

    If the program ran several times, these are the ops of all iterations, one behind another.
    """

    program: int
    first: int
    ops: int


class Numbered(NamedTuple):
    """The number of a program.

    If `is_new`, the program itself must be sent too, and the server must forget the programs numbered in `forgotten`.
    """

    number: int
    is_new: bool
    forgotten: tuple[int, ...]


class _Latest:
    """A collection of distinct items that holds the items that were added last, at most `MOST_DIGESTS`."""

    def __init__(self) -> None:
        self._items: OrderedDict[bytes, None] = OrderedDict()

    def add(self, item: bytes) -> None:
        """Adds an item. A call that was interrupted may be repeated."""
        self._items[item] = None
        self._items.move_to_end(item)
        while len(self._items) > MOST_DIGESTS:
            self._items.popitem(last=False)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._items)


class Programs:
    """At most `most` programs with their numbers. The session's lock guards them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._entries: OrderedDict[ProgramKey, _Entry] = OrderedDict()
        self._next_number = 0
        self._digests = {False: _Latest(), True: _Latest()}  # by is_fragment

    def encoded(self, key: ProgramKey) -> EncodedProgram | None:
        entry = self._entries.get(key)
        return None if entry is None else entry.encoded

    def keep(self, key: ProgramKey, encoded: EncodedProgram) -> None:
        if key not in self._entries:
            self._entries[key] = _Entry(encoded)

    def number(self, key: ProgramKey) -> Numbered:
        """Returns the number for a use of a kept program. Changes nothing: `take` then notes the use."""
        entry = self._entries[key]
        if entry.numbered is not None:
            return entry.numbered
        return Numbered(self._next_number, is_new=True, forgotten=tuple(self._pushed_out_by(key)))

    def take(self, key: ProgramKey, numbered: Numbered, first: int, ops: int) -> None:
        """Notes a use of the program, by ops from handle `first` on. A call that was interrupted may be repeated."""
        entry = self._entries[key]
        entry.first, entry.ops = first, ops
        self._entries.move_to_end(key)
        if not numbered.is_new:
            return
        entry.numbered = Numbered(numbered.number, is_new=False, forgotten=())
        self._next_number = numbered.number + 1
        self._digests[key.is_fragment].add(digest(entry.encoded.raw))
        while len(self._entries) > self._most:
            self._entries.popitem(last=False)

    def last_uses(self) -> Iterator[Use]:
        """Yields the last use of each program that the server knows. The program that was used last comes first."""
        for entry in reversed(self._entries.values()):
            if entry.numbered is not None:
                yield Use(entry.numbered.number, entry.first, entry.ops)

    def digests(self, *, are_fragments: bool) -> tuple[str, ...]:
        """Returns the sorted hexadecimal digests of the fragments, or of the whole bodies, that were numbered last."""
        return tuple(sorted(each.hex() for each in self._digests[are_fragments]))

    def newest_digests(self, most: int) -> tuple[bytes, ...]:
        """Returns the digests of the whole bodies that were numbered last."""
        return tuple(self._digests[False])[-most:]

    def _pushed_out_by(self, key: ProgramKey) -> Iterator[int]:
        surplus = max(len(self._entries) - self._most, 0)
        others = (entry for other, entry in self._entries.items() if other != key)
        for entry in islice(others, surplus):
            if entry.numbered is not None:
                yield entry.numbered.number
