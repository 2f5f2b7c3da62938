"""Lays out the arena: gives a fixed offset to every interior buffer. Buffers that are never needed at the same time
share memory.

A buffer takes memory at the launch that first writes it, and frees it after the launch that last uses it. All instances
of a launch run at the same time, so no memory is freed within a launch. One exception: a result may be written over an
operand of the same instance if nothing else reads that operand, and if each element is written at the point that reads
it.
"""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from math import prod
from typing import NamedTuple

from fusewire_kernels.fusion.lowering import Instance
from fusewire_kernels.graph.graph import INPUT, Graph, Value
from fusewire_kernels.memory.lifetimes import Lifetime, may_overwrite
from fusewire_kernels.plan.plan import ARENA_ALIGNMENT_BYTES


class Arena(NamedTuple):
    """The size of the arena, and the offset in bytes of each value's buffer."""

    size_bytes: int
    offset_of: dict[int, int]


class _Range(NamedTuple):
    """A range of bytes of the arena."""

    offset: int
    size_bytes: int


def arrange(graph: Graph, instances: list[Instance], lifetimes: dict[int, Lifetime]) -> Arena:
    """Gives an offset to every buffer that is neither an input nor a live result."""
    outputs = set(graph.outputs)
    arranger = _Arranger(graph, instances, lifetimes)
    for value, lifetime in lifetimes.items():  # in order of first use, which for these buffers is the first write
        if value not in outputs and graph.values[value].form is not INPUT:
            arranger.allocate(value, lifetime)
    return Arena(arranger.size_bytes, arranger.offset_of)


class _Arranger:
    def __init__(self, graph: Graph, instances: list[Instance], lifetimes: dict[int, Lifetime]) -> None:
        self.size_bytes = 0
        self.offset_of: dict[int, int] = {}
        self._graph, self._instances, self._lifetimes = graph, instances, lifetimes
        self._free: list[_Range] = []  # by offset, never adjacent
        # Buffers in the arena, by the launch that uses them last.
        self._ending: defaultdict[int, dict[int, _Range]] = defaultdict(dict)
        self._launch = 0  # buffers last used before this launch have been freed

    def allocate(self, value: int, lifetime: Lifetime) -> None:
        """Gives a buffer its offset. Call it for the buffers in the order in which they are first written."""
        launch, group = lifetime.writes[0]
        self._give_back_before(launch)
        source = self._source_to_overwrite(value, launch, self._instances[group])
        if source is None:
            reserved = self._take(_size_bytes(self._graph.values[value]))
        else:
            reserved = self._ending[launch].pop(source)
        self.offset_of[value] = reserved.offset
        self._ending[lifetime.last_use][value] = reserved

    def _source_to_overwrite(self, value: int, launch: int, instance: Instance) -> int | None:
        """A buffer that the value may overwrite, because its last use is the launch that first writes the value."""
        ending = self._ending.get(launch)
        if not ending:
            return None
        for source, _ in instance.read():
            if source in ending and may_overwrite(self._graph, self._instances, self._lifetimes, source, value):
                return source
        return None

    def _take(self, size_bytes: int) -> _Range:
        """Takes the smallest free range that is large enough, or extends the arena."""
        fitting = [free for free in self._free if free.size_bytes >= size_bytes]
        if not fitting:
            return self._extend(size_bytes)
        smallest = min(fitting, key=lambda free: free.size_bytes)
        self._free.remove(smallest)
        if smallest.size_bytes > size_bytes:
            insort(self._free, _Range(smallest.offset + size_bytes, smallest.size_bytes - size_bytes))
        return _Range(smallest.offset, size_bytes)

    def _extend(self, size_bytes: int) -> _Range:
        offset = self.size_bytes
        if self._free and self._free[-1].offset + self._free[-1].size_bytes == offset:
            offset = self._free.pop().offset
        self.size_bytes = offset + size_bytes
        return _Range(offset, size_bytes)

    def _give_back_before(self, launch: int) -> None:
        for ended in range(self._launch, launch):
            for unused in self._ending.pop(ended, {}).values():
                self._give_back(unused)
        self._launch = launch

    def _give_back(self, unused: _Range) -> None:
        for other in [other for other in self._free if _touch(other, unused)]:
            self._free.remove(other)
            unused = _Range(min(other.offset, unused.offset), other.size_bytes + unused.size_bytes)
        insort(self._free, unused)


def _size_bytes(value: Value) -> int:
    size_bytes = max(prod(value.shape) * value.dtype.itemsize_bytes, 1)
    return -(-size_bytes // ARENA_ALIGNMENT_BYTES) * ARENA_ALIGNMENT_BYTES


def _touch(a: _Range, b: _Range) -> bool:
    return a.offset + a.size_bytes == b.offset or b.offset + b.size_bytes == a.offset
