"""A list of items in msgpack, each unpacked when it is asked for, so that a long one holds nobody up.

An item is a list of a few fields; a field is a number, a flag, bytes, or a list of those. Nothing is nested deeper, and
the length of a list is looked at before any of it is unpacked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Generic, TypeVar

import msgpack

from fusewire_protos.errors import CaseError

T = TypeVar("T")

_MOST_FIELDS = 7
# What lists begin with: those of up to 15 items, and those whose lengths take two and four bytes.
_LIST_HEADS = frozenset((*range(0x90, 0xA0), 0xDC, 0xDD))


class Reader(Generic[T]):
    """What is left of the items; `len` says how many. `decode` checks one and makes it what it stands for.

    Making a reader and asking it for an item raise CaseError (a protocol case) for anything malformed, and for a list
    of more than `most_listed` in an item.
    """

    def __init__(self, raw: bytes, decode: Callable[[Any], T], most_listed: int) -> None:
        self._raw = raw
        self._decode = decode
        self._most_listed = most_listed
        self._unpacker = _unpacker_of(raw)
        self._left = self._count() if raw else 0
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
        except (ValueError, msgpack.UnpackException) as error:
            raise _malformed(error) from None
        self._left -= 1
        self._check_end()
        return self._decode(item)

    def _count(self) -> int:
        try:
            count: int = self._unpacker.read_array_header()
        except (ValueError, msgpack.UnpackException) as error:
            raise _malformed(error) from None
        return count

    def _item(self) -> Any:
        if not self._is_at_list():
            return self._unpacker.unpack()
        fields = self._unpacker.read_array_header()
        if fields > _MOST_FIELDS:
            raise CaseError("undecodable_frame", f"an item of {fields} fields")
        return tuple([self._field() for _ in range(fields)])

    def _field(self) -> Any:
        if not self._most_listed or not self._is_at_list():
            return self._unpacker.unpack()
        length = self._unpacker.read_array_header()
        if length > self._most_listed:
            raise CaseError("oversized_frame", f"an entry lists {length} numbers; the most is {self._most_listed}")
        values = tuple(islice(self._unpacker, length))
        if len(values) != length:
            raise CaseError("undecodable_frame", "a list is cut off")
        return values

    def _is_at_list(self) -> bool:
        offset = self._unpacker.tell()
        return offset < len(self._raw) and self._raw[offset] in _LIST_HEADS

    def _check_end(self) -> None:
        if not self._left and self._unpacker.tell() != len(self._raw):
            raise CaseError("undecodable_frame", "something stands behind the last item")


def _unpacker_of(raw: bytes) -> msgpack.Unpacker:
    """Finds no list but where its head is read first."""
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
    return unpacker


def _malformed(error: Exception) -> CaseError:
    return CaseError("undecodable_frame", f"not msgpack of the agreed form: {type(error).__name__}")
