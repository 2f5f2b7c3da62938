"""The arena: every interior buffer at a fixed offset, so that buffers which are never needed at once share memory.

A buffer's memory is taken at the launch that first writes it and given back after the launch that last uses it. Within
a launch all instances run at once, so nothing is given back in between; but a result may lie on an operand that ends
with the same task, if each element is written at the point that reads it.
"""

from __future__ import annotations

from bisect import insort
from math import prod
from typing import NamedTuple

from fusewire_kernels.graph import INPUT, Graph
from fusewire_kernels.lifetimes import Lifetime, may_overwrite
from fusewire_kernels.lower import Task
from fusewire_kernels.plan import ARENA_ALIGNMENT_BYTES


class Arena(NamedTuple):
    """`offset_of[value]`: where a buffer begins, in bytes."""

    size_bytes: int
    offset_of: dict[int, int]


class _Hole(NamedTuple):
    """Free memory."""

    offset: int
    size_bytes: int


def arrange(graph: Graph, tasks: list[Task], lifetimes: dict[int, Lifetime]) -> Arena:
    """Offsets for all buffers that are neither inputs nor live results."""
    outputs = set(graph.outputs)
    interior = [value for value in lifetimes if value not in outputs and graph.values[value].form is not INPUT]
    interior.sort(key=lambda value: lifetimes[value].first_write)
    arranger = _Arranger(graph, tasks, lifetimes)
    for value in interior:
        arranger.place(value)
    return Arena(arranger.size_bytes, arranger.offset_of)


class _Arranger:
    def __init__(self, graph: Graph, tasks: list[Task], lifetimes: dict[int, Lifetime]) -> None:
        self.size_bytes = 0
        self.offset_of: dict[int, int] = {}
        self._graph, self._tasks, self._lifetimes = graph, tasks, lifetimes
        self._holes: list[_Hole] = []  # by offset, never adjacent
        self._alive: dict[int, int] = {}  # what lies in the arena, and the last launch that uses it
        self._ending: list[tuple[int, int]] = []  # of the same, (last launch, value), soonest first

    def place(self, value: int) -> None:
        """Gives a buffer its offset. Buffers come in the order in which they are first written."""
        lifetime = self._lifetimes[value]
        launch, group = lifetime.writes[0]
        self._give_back_before(launch)
        source = self._source_to_overwrite(value, launch, self._tasks[group])
        if source is None:
            self.offset_of[value] = self._take(self._size(value))
        else:
            self.offset_of[value] = self.offset_of[source]
            self._ending.remove((launch, source))
            del self._alive[source]
        last_use = self._alive[value] = lifetime.last_use
        insort(self._ending, (last_use, value))

    def _source_to_overwrite(self, value: int, launch: int, task: Task) -> int | None:
        """What ends in the launch that first writes a value, where the value may lie."""
        alive = self._alive
        for source, _ in task.operands[: len(task.operands) - task.outputs]:
            if alive.get(source) == launch and may_overwrite(self._graph, self._tasks, self._lifetimes, source, value):
                return source
        return None

    def _size(self, value: int) -> int:
        spec = self._graph.values[value]
        size_bytes = max(prod(spec.shape) * spec.dtype.itemsize_bytes, 1)
        return -(-size_bytes // ARENA_ALIGNMENT_BYTES) * ARENA_ALIGNMENT_BYTES

    def _take(self, size_bytes: int) -> int:
        """The smallest hole that is large enough, or new memory at the end."""
        fitting = [hole for hole in self._holes if hole.size_bytes >= size_bytes]
        if not fitting:
            return self._extend(size_bytes)
        hole = min(fitting, key=lambda hole: hole.size_bytes)
        self._holes.remove(hole)
        if hole.size_bytes > size_bytes:
            insort(self._holes, _Hole(hole.offset + size_bytes, hole.size_bytes - size_bytes))
        return hole.offset

    def _extend(self, size_bytes: int) -> int:
        offset = self.size_bytes
        if self._holes and self._holes[-1].offset + self._holes[-1].size_bytes == offset:
            offset = self._holes.pop().offset
        self.size_bytes = offset + size_bytes
        return offset

    def _give_back_before(self, launch: int) -> None:
        while self._ending and self._ending[0][0] < launch:
            _, value = self._ending.pop(0)
            del self._alive[value]
            self._give_back(_Hole(self.offset_of[value], self._size(value)))

    def _give_back(self, hole: _Hole) -> None:
        for other in [other for other in self._holes if _touch(other, hole)]:
            self._holes.remove(other)
            hole = _Hole(min(other.offset, hole.offset), other.size_bytes + hole.size_bytes)
        insort(self._holes, hole)


def _touch(a: _Hole, b: _Hole) -> bool:
    return a.offset + a.size_bytes == b.offset or b.offset + b.size_bytes == a.offset
