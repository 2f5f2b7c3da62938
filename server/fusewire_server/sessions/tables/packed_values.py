"""Keeps values that nobody has touched lately as numbers in arrays: as objects they take six times as much. Pure."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from fusewire_kernels.devices.base import Block
from fusewire_protos.ops.shapes import Spec

_MOST = 512  # values of one chunk, which may be taken out in one step


class PackedValue(NamedTuple):
    """A value that is computed, that the client holds, and that no row or fetch is about to read."""

    handle: int
    spec: Spec
    made_at_ns: int
    op_index: int
    block: Block


class PackedValues:
    """The packed values of one session, by handle. The engine thread owns this object.

    The values lie in chunks of neighbours, so that a client cannot choose handles that make it slow or large.
    """

    __slots__ = ("_chunks", "_firsts", "count")

    def __init__(self) -> None:
        self.count = 0
        self._firsts: list[int] = []  # the first handle of each chunk, ascending
        self._chunks: list[_Chunk] = []

    def __len__(self) -> int:
        return self.count

    def __contains__(self, handle: object) -> bool:
        return isinstance(handle, int) and self.get(handle) is not None

    def __iter__(self) -> Iterator[int]:
        """Yields the handles, ascending."""
        for chunk in self._chunks:
            yield from chunk.handles

    def add(self, value: PackedValue) -> None:
        """Adds a value. Its handle is that of no other packed value."""
        if not self._chunks:
            self._insert_chunk(0, _Chunk())
        number = max(bisect_right(self._firsts, value.handle) - 1, 0)
        chunk = self._chunks[number]
        if len(chunk.handles) == _MOST:
            self._insert_chunk(number + 1, chunk.split(value.handle))
            number += self._firsts[number + 1] <= value.handle
            chunk = self._chunks[number]
        chunk.insert(bisect_left(chunk.handles, value.handle), value)
        self._firsts[number] = chunk.handles[0]
        self.count += 1

    def get(self, handle: int) -> PackedValue | None:
        """Returns a value, or None if there is none with this handle."""
        found = self._found(handle)
        return None if found is None else self._chunks[found[0]].value(found[1])

    def pop(self, handle: int) -> PackedValue | None:
        """Removes and returns a value. Returns None if there is none with this handle."""
        found = self._found(handle)
        if found is None:
            return None
        number, position = found
        chunk = self._chunks[number]
        value = chunk.value(position)
        chunk.remove(position)
        self.count -= 1
        if chunk.handles:
            self._firsts[number] = chunk.handles[0]
        else:
            del self._chunks[number], self._firsts[number]
        return value

    def pop_some(self) -> list[PackedValue]:
        """Removes and returns some values: none if there are none left."""
        if not self._chunks:
            return []
        chunk = self._chunks.pop()
        self._firsts.pop()
        self.count -= len(chunk.handles)
        return [chunk.value(position) for position in range(len(chunk.handles))]

    def _insert_chunk(self, number: int, chunk: _Chunk) -> None:
        self._chunks.insert(number, chunk)
        self._firsts.insert(number, chunk.handles[0] if chunk.handles else 0)

    def _found(self, handle: int) -> tuple[int, int] | None:
        """Returns the number of a handle's chunk, and its position there."""
        number = bisect_right(self._firsts, handle) - 1
        if number < 0:
            return None
        handles = self._chunks[number].handles
        position = bisect_left(handles, handle)
        return (number, position) if position < len(handles) and handles[position] == handle else None


_COLUMNS = ("addresses", "handles", "made_at_ns", "op_indices", "owners", "sizes_bytes", "specs")


class _Chunk:
    """Some packed values, in ascending order of handles. Each list has an item for each value."""

    __slots__ = _COLUMNS

    def __init__(self) -> None:
        self.handles = array("q")
        self.made_at_ns = array("q")
        self.op_indices = array("i")
        self.addresses = array("Q")
        self.sizes_bytes = array("q")
        self.specs: list[Spec] = []
        self.owners: list[object] = []

    def insert(self, position: int, value: PackedValue) -> None:
        self.handles.insert(position, value.handle)
        self.made_at_ns.insert(position, value.made_at_ns)
        self.op_indices.insert(position, value.op_index)
        self.addresses.insert(position, value.block.address)
        self.sizes_bytes.insert(position, value.block.size_bytes)
        self.specs.insert(position, value.spec)
        self.owners.insert(position, value.block.owner)

    def value(self, position: int) -> PackedValue:
        block = Block(self.addresses[position], self.sizes_bytes[position], self.owners[position])
        made_at_ns, op_index = self.made_at_ns[position], self.op_indices[position]
        return PackedValue(self.handles[position], self.specs[position], made_at_ns, op_index, block)

    def remove(self, position: int) -> None:
        del self.handles[position], self.made_at_ns[position], self.op_indices[position], self.addresses[position]
        del self.sizes_bytes[position], self.specs[position], self.owners[position]

    def split(self, handle: int) -> _Chunk:
        """Moves the upper half to a new chunk, or nothing if `handle` is the highest: then the new chunk begins it."""
        upper = _Chunk()
        middle = len(self.handles) if handle > self.handles[-1] else len(self.handles) // 2
        for name in _COLUMNS:
            moved = getattr(self, name)
            setattr(upper, name, moved[middle:])
            setattr(self, name, moved[:middle])
        return upper
