"""The arena: every interior buffer at a fixed offset, so that buffers which are never needed at once share memory.

A buffer's memory is taken at the launch that first writes it and given back after the launch that last uses it. Within
a launch all instances run at once, so nothing is given back in between; but a result may lie on an operand that ends
with the same instance, if each element is written at the point that reads it.
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
    """`offset_of[value]`: where a buffer begins, in bytes."""

    size_bytes: int
    offset_of: dict[int, int]


class _Range(NamedTuple):
    """A piece of the arena."""

    offset: int
    size_bytes: int


def arrange(graph: Graph, instances: list[Instance], lifetimes: dict[int, Lifetime]) -> Arena:
    """Offsets for all buffers that are neither inputs nor live results."""
    outputs = set(graph.outputs)
    arranger = _Arranger(graph, instances, lifetimes)
    for value, lifetime in lifetimes.items():  # in order of first use, which of these is the first write
        if value not in outputs and graph.values[value].form is not INPUT:
            arranger.place(value, lifetime)
    return Arena(arranger.size_bytes, arranger.offset_of)


class _Arranger:
    def __init__(self, graph: Graph, instances: list[Instance], lifetimes: dict[int, Lifetime]) -> None:
        self.size_bytes = 0
        self.offset_of: dict[int, int] = {}
        self._graph, self._instances, self._lifetimes = graph, instances, lifetimes
        self._free: list[_Range] = []  # by offset, never adjacent
        # What lies in the arena, by the last launch that uses it.
        self._ending: defaultdict[int, dict[int, _Range]] = defaultdict(dict)
        self._launch = 0  # what ended before this one has been given back

    def place(self, value: int, lifetime: Lifetime) -> None:
        """Gives a buffer its offset. Buffers come in the order in which they are first written."""
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
        """What ends in the launch that first writes a value, where the value may lie."""
        ending = self._ending.get(launch)
        if not ending:
            return None
        for source, _ in instance.operands[: len(instance.operands) - instance.outputs]:
            if source in ending and may_overwrite(self._graph, self._instances, self._lifetimes, source, value):
                return source
        return None

    def _take(self, size_bytes: int) -> _Range:
        """The smallest free range that is large enough, or new memory at the end."""
        fitting = [reserved for reserved in self._free if reserved.size_bytes >= size_bytes]
        if not fitting:
            return self._extend(size_bytes)
        reserved = min(fitting, key=lambda reserved: reserved.size_bytes)
        self._free.remove(reserved)
        if reserved.size_bytes > size_bytes:
            insort(self._free, _Range(reserved.offset + size_bytes, reserved.size_bytes - size_bytes))
        return _Range(reserved.offset, size_bytes)

    def _extend(self, size_bytes: int) -> _Range:
        offset = self.size_bytes
        if self._free and self._free[-1].offset + self._free[-1].size_bytes == offset:
            offset = self._free.pop().offset
        self.size_bytes = offset + size_bytes
        return _Range(offset, size_bytes)

    def _give_back_before(self, launch: int) -> None:
        for ended in range(self._launch, launch):
            for reserved in self._ending.pop(ended, {}).values():
                self._give_back(reserved)
        self._launch = launch

    def _give_back(self, reserved: _Range) -> None:
        for other in [other for other in self._free if _touch(other, reserved)]:
            self._free.remove(other)
            reserved = _Range(min(other.offset, reserved.offset), other.size_bytes + reserved.size_bytes)
        insort(self._free, reserved)


def _size_bytes(value: Value) -> int:
    size_bytes = max(prod(value.shape) * value.dtype.itemsize_bytes, 1)
    return -(-size_bytes // ARENA_ALIGNMENT_BYTES) * ARENA_ALIGNMENT_BYTES


def _touch(a: _Range, b: _Range) -> bool:
    return a.offset + a.size_bytes == b.offset or b.offset + b.size_bytes == a.offset
