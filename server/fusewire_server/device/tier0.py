"""Runs submissions op by op on the device thread, in reserved memory. Other orders get that memory if they need it."""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from fusewire_kernels.devices.base import Device
from fusewire_kernels.ops.interpreter import PreparedProgram
from fusewire_server.device.intermediate_bytes import intermediate_bytes, most_intermediate_bytes
from fusewire_server.device.memory import Demand, DeviceMemory
from fusewire_server.device.op_by_op import op_cache_of, prepare, run_op_by_op
from fusewire_server.programs.program_table import ProgramEntry
from fusewire_server.sessions.session import Row


@dataclass(eq=False, slots=True)
class _Known:
    """The bytes of a program's intermediate values, and the program's ops once they are prepared."""

    at_most_bytes: int
    exact_bytes: int | None = None
    prepared: PreparedProgram | None = None
    is_in_the_making: bool = False  # whether a row that prepares the program is running


class Tier0:
    """State that all runs at tier 0 share: the cache of prepared ops, and what is known about each program."""

    def __init__(self, device: Device, memory: DeviceMemory) -> None:
        self._device = device
        self._memory = memory
        self._op_cache = op_cache_of(device)
        self._known: WeakKeyDictionary[ProgramEntry, _Known] = WeakKeyDictionary()

    def op_by_op(self, entry: ProgramEntry) -> OpByOp:
        """Returns what computes the rows of one run of this program."""
        return OpByOp(self, self._device, self._memory, entry)

    def known(self, entry: ProgramEntry) -> _Known:
        known = self._known.get(entry)
        if known is None:
            known = self._known[entry] = _Known(most_intermediate_bytes(entry.program))
        return known

    def prepared(self, entry: ProgramEntry) -> Generator[None, None, PreparedProgram]:
        """Prepares a program if needed. Each resumption prepares a few ops."""
        known = self.known(entry)
        if known.prepared is None:
            known.prepared = yield from prepare(self._device, self._op_cache, entry)
        return known.prepared


class OpByOp:
    """Computes the rows of one run. An iteration of a row may be stopped after any op, and begun again later, because
    results are written after all ops.
    """

    def __init__(self, tier0: Tier0, device: Device, memory: DeviceMemory, entry: ProgramEntry) -> None:
        self._tier0 = tier0
        self._memory = memory
        self._entry = entry
        self._known = tier0.known(entry)
        self._reservation = memory.enter(Demand(self._known.at_most_bytes, self._exact_bytes), self._close)
        self._device = device
        self._steps: Generator[None, None, None] | None = None
        self._iterations = 0  # of the current row that have been computed
        self._is_making = False  # whether this run's row prepares the program, for all runs of the program

    @property
    def is_under_way(self) -> bool:
        return self._steps is not None

    def begin(self, row: Row, span: range) -> bool:
        """Begins a row, or goes on with the iterations that are left.

        Returns False if the row must wait for memory or for a row that prepares the program. Raises OutOfMemory.
        """
        known = self._known
        if known.prepared is None and known.is_in_the_making:
            return False
        if not self._memory.reserve(self._reservation):
            return False
        self._is_making = known.is_in_the_making = known.prepared is None
        self._steps = self._run(row, span[self._iterations :])
        return True

    def go_on(self, until_ns: int) -> bool:
        assert self._steps is not None, "a row begins before it goes on"
        with np.errstate(all="ignore"):
            for _ in self._steps:
                if time.perf_counter_ns() >= until_ns:
                    return False
        return True

    def stop(self) -> None:
        self._close()
        self._iterations = 0
        self._memory.unreserve(self._reservation)

    def leave(self) -> None:
        self._memory.leave(self._reservation)

    def _run(self, row: Row, left: range) -> Generator[None, None, None]:
        """Runs the iterations that are left. Each resumption does one op or a few ops."""
        prepared = yield from self._tier0.prepared(self._entry)
        for iteration in left:
            yield from run_op_by_op(self._device, prepared, row.at(iteration))
            self._iterations += 1

    def _close(self) -> None:
        if self._steps is not None:
            self._steps.close()
            self._steps = None
        if self._is_making:
            self._is_making = self._known.is_in_the_making = False

    def _exact_bytes(self) -> int:
        """Returns the bytes of a row's values. Counts only when needed, because counting takes as long as many ops."""
        if self._known.exact_bytes is None:
            self._known.exact_bytes = intermediate_bytes(self._entry.program)
        return self._known.exact_bytes
