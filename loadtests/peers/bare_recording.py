"""The least work with which Python can record an op: an operator that appends a tuple and makes an object.

The object reports its deletion. There are no dtype rules, threads or segments. The time per op is a measure of the
machine's speed at the moment.
"""

from __future__ import annotations

from multiprocessing.connection import Connection
from time import perf_counter_ns

from loadtests.measuring.workers import answer_commands

Record = tuple[int, int, int]


class BareTape:
    """The recorded ops, and the handles of deleted arrays."""

    __slots__ = ("dead_handles", "records")

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.dead_handles: list[int] = []


class BareArray:
    """An array that has a handle only."""

    __slots__ = ("_handle", "_tape")

    def __init__(self, handle: int, tape: BareTape) -> None:
        self._handle = handle
        self._tape = tape

    def __add__(self, other: BareArray) -> BareArray:
        records = self._tape.records
        records.append((0, self._handle, other._handle))
        return BareArray(len(records), self._tape)

    def __del__(self) -> None:
        self._tape.dead_handles.append(self._handle)


def serve(connection: Connection) -> None:
    """Answers `record OPS`."""
    answer_commands(connection, {"record": record_bare})


def record_bare(ops: int) -> float:
    """Returns the time of an op in a chain of additions, in µs."""
    tape = BareTape()
    x, increment = BareArray(0, tape), BareArray(0, tape)
    began_ns = perf_counter_ns()
    for _ in range(ops):
        x = x + increment
    return (perf_counter_ns() - began_ns) / 1e3 / ops
