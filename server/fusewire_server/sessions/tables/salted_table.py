"""A table by numbers that a client chooses, in which the client cannot choose what lies where. Pure.

In Python the hash of a number is the number itself, so a client could choose numbers for which a dict looks in very
many places, one after another. A table of a million such handles takes 30 ms for each look-up. Here each number is
changed by a secret of this process first, so its place is not the client's choice.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, MutableMapping, ValuesView
from typing import TypeVar, overload

T = TypeVar("T")
D = TypeVar("D")

_SECRET = secrets.randbits(62)


class SaltedTable(MutableMapping[int, T]):
    """A dict by numbers that a client chooses. Keeps the order in which items were added."""

    __slots__ = ("_items",)

    def __init__(self) -> None:
        self._items: dict[int, T] = {}

    @overload
    def get(self, number: int, default: None = None, /) -> T | None: ...

    @overload
    def get(self, number: int, default: D, /) -> T | D: ...

    def get(self, number: int, default: D | None = None, /) -> T | D | None:
        """Returns the item of a number, or `default`."""
        return self._items.get(number ^ _SECRET, default)

    @overload
    def pop(self, number: int, /) -> T: ...

    @overload
    def pop(self, number: int, default: D, /) -> T | D: ...

    def pop(self, number: int, *default: D) -> T | D:
        """Removes and returns the item of a number."""
        return self._items.pop(number ^ _SECRET, *default)

    def values(self) -> ValuesView[T]:
        """Returns the items, in order."""
        return self._items.values()

    def clear(self) -> None:
        """Removes all items."""
        self._items.clear()

    def __getitem__(self, number: int) -> T:
        return self._items[number ^ _SECRET]

    def __setitem__(self, number: int, item: T) -> None:
        self._items[number ^ _SECRET] = item

    def __delitem__(self, number: int) -> None:
        del self._items[number ^ _SECRET]

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and number ^ _SECRET in self._items

    def __iter__(self) -> Iterator[int]:
        return map(_SECRET.__xor__, self._items)

    def __len__(self) -> int:
        return len(self._items)
