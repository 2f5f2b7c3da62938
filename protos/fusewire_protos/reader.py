"""Reads a msgpack list item by item, so that other work can be done between the items of a long list.

An item is a list of a few fields. A field is a number, a flag, bytes, or a list of these. The head of a list says how
many items follow, and may lie. So the reader finds the end of an item before it unpacks the item, and allocates no
memory for items that do not exist. A short item is unpacked in one step. In a long item, the reader checks the length
of each list first, and refuses deeper nesting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

import msgpack

from fusewire_protos.errors import CaseError
from fusewire_protos.unpacking import unpack_bounded

T = TypeVar("T")

SHORT_ITEM_BYTES = 16 << 10  # any item of at most so many bytes is unpacked within a millisecond

_MOST_FIELDS = 13
_ANY_LENGTH = 2**32 - 1
_NOT_MSGPACK = (ValueError, msgpack.UnpackException)


class Reader(Generic[T]):
    """An iterator over the items. `len` is the number of items that are left. `decode` checks and converts an item.

    The constructor and `next` raise CaseError (a protocol case) for malformed bytes, and for a list of more than
    `most_listed` numbers in an item.
    """

    def __init__(self, raw: bytes, decode: Callable[[Any], T], most_listed: int) -> None:
        self._raw = raw
        self._decode = decode
        self._most_listed = most_listed
        self._longest = max(most_listed, _MOST_FIELDS)  # of all lists; an item is a list too
        self._walker = skipper(raw)
        self._left = self._count() if raw else 0
        self.position = self._walker.tell()  # behind the last item read
        if not self._left:
            self._check_end()

    def __len__(self) -> int:
        return self._left

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        if not self._left:
            raise StopIteration
        try:
            item = self._item()
        except _NOT_MSGPACK as error:
            raise _malformed(error) from None
        self._left -= 1
        if not self._left:
            self._check_end()
        return self._decode(item)

    def _count(self) -> int:
        try:
            count: int = self._walker.read_array_header()
        except _NOT_MSGPACK as error:
            raise _malformed(error) from None
        return count

    def _item(self) -> Any:
        begin = self.position
        try:
            self._walker.skip()
            self.position = end = self._walker.tell()
            if end - begin <= SHORT_ITEM_BYTES:
                return unpack_bounded(self._raw[begin:end], self._longest)
        except _NOT_MSGPACK:
            end = len(self._raw)  # reading field by field below finds the error
        return self._item_of_fields(self._raw[begin:end])

    def _item_of_fields(self, raw: bytes) -> Any:
        head = head_of(raw)
        if head is None:
            return unpack_bounded(raw, 0)
        if head.length > _MOST_FIELDS:
            raise CaseError("undecodable_frame", f"an item of {head.length} fields")
        fields = raw[head.size_bytes :]
        walker = skipper(fields)
        return tuple([self._field(fields, walker) for _ in range(head.length)])

    def _field(self, fields: bytes, walker: msgpack.Unpacker) -> Any:
        begin = walker.tell()
        head = head_of(fields, begin) if self._most_listed else None
        if head is not None and head.length > self._most_listed:
            raise CaseError("oversized_frame", f"an entry lists {head.length} numbers; the most is {self._most_listed}")
        walker.skip()
        raw = fields[begin : walker.tell()]
        return unpack_bounded(raw, 0) if head is None else _unpacked_list(raw[head.size_bytes :])

    def _check_end(self) -> None:
        if self.position != len(self._raw):
            raise CaseError("undecodable_frame", "there are bytes behind the last item")


class Head(NamedTuple):
    """The head of a msgpack list."""

    length: int
    size_bytes: int


def head_of(raw: bytes, begin: int = 0) -> Head | None:
    """Returns the head of the list at `begin`; None if the value there is no list."""
    first = raw[begin : begin + 1]
    if b"\x90" <= first < b"\xa0":
        return Head(first[0] - 0x90, 1)
    size_bytes = {b"\xdc": 3, b"\xdd": 5}.get(first)
    if size_bytes is None:
        return None
    return Head(int.from_bytes(raw[begin + 1 : begin + size_bytes], "big"), size_bytes)


def skipper(raw: bytes) -> msgpack.Unpacker:
    """Returns an unpacker that is used to skip values without unpacking them."""
    walker = msgpack.Unpacker(max_buffer_size=max(len(raw), 1), max_array_len=_ANY_LENGTH)
    walker.feed(raw)
    return walker


def _unpacked_list(raw: bytes) -> tuple[Any, ...]:
    """The values of a list whose head is removed. Raises if one of them is a list that is not empty."""
    unpacker = msgpack.Unpacker(
        use_list=False,
        max_buffer_size=max(len(raw), 1),
        max_array_len=0,
        max_bin_len=len(raw),
        max_str_len=0,
        max_map_len=0,
        max_ext_len=0,
    )
    unpacker.feed(raw)
    return tuple(unpacker)


def _malformed(error: Exception) -> CaseError:
    return CaseError("undecodable_frame", f"not msgpack of the expected form: {type(error).__name__}")
