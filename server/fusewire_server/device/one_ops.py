"""Keeps what computes each call of one op: the call's loaded plan, or its NumPy twin. Device thread.

A call's plan is made here, because that takes less time than asking another process. Its kernels are compiled files
that lie on disk. If some are missing, the NumPy twin computes the call, provided that it gives the bits of a kernel, or
that nothing can be compiled. Otherwise the planner has the kernels compiled, and `add` brings the plan.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from fusewire_kernels.build import build_plan
from fusewire_kernels.devices.base import Device, LoadedPlan
from fusewire_kernels.plan.plan import KernelSource
from fusewire_kernels.plan.slots import SlotLayout
from fusewire_kernels.unfused.one_op_call import OneOpCall
from fusewire_kernels.unfused.twins import Twin, has_same_bits, twin_of
from fusewire_protos.errors import ConfigurationError, ServerFault

log = logging.getLogger("fusewire.device")

MOST_CALLS = 4096
# The planner makes a plan of more operands: it would take so long here that other orders would wait.
_MOST_OPERANDS = 64

# Returns the compiled file of each kernel, or None if some kernel has no file.
FindKernels = Callable[[Sequence[KernelSource]], Sequence[str] | None]


class OneOp(Protocol):
    """What computes a call. It needs an arena of `arena_bytes` while it runs."""

    @property
    def arena_bytes(self) -> int: ...

    def run(self, operands: Sequence[int], result: int, arena: int, starts: Sequence[int]) -> None:
        """Computes the result, after all earlier work of the device. Arguments are addresses of dense arrays.

        Raises OutOfMemory if the device has no memory of its own for the launch.
        """


class PlannedOp:
    """Computes a call by its plan."""

    def __init__(self, device: Device, loaded: LoadedPlan) -> None:
        self.arena_bytes = loaded.plan.arena_bytes
        self._device = device
        self._loaded = loaded
        self._slot_layout = SlotLayout(loaded.plan)
        self._table = np.zeros((1, len(loaded.plan.columns)), np.int64)

    def run(self, operands: Sequence[int], result: int, arena: int, starts: Sequence[int]) -> None:
        self._slot_layout.fill(self._table[0], arena, operands, (result,), (), starts)
        self._device.launch(self._loaded, self._table)


class TwinOp:
    """Computes a call by its NumPy twin. Only for devices whose memory is the host's."""

    arena_bytes = 0

    def __init__(self, twin: Twin) -> None:
        self._twin = twin

    def run(self, operands: Sequence[int], result: int, arena: int, starts: Sequence[int]) -> None:
        self._twin(operands, result, starts)


class OneOps:
    """The calls that all programs of a device share. Beyond `most_calls`, the call that was found least recently goes.

    `find_kernels` looks for compiled files.
    """

    def __init__(self, device: Device, find_kernels: FindKernels, most_calls: int = MOST_CALLS) -> None:
        self._device = device
        self._find_kernels = find_kernels
        self._most_calls = most_calls
        self._dialect = device.info.dialect
        self._has_compiler = device.info.has_compiler
        self._has_twins = self._dialect != "cuda"  # the device's memory is the host's
        self._known: OrderedDict[OneOpCall, OneOp | str] = OrderedDict()  # a text says why there are no kernels

    def find(self, call: OneOpCall) -> OneOp | str | None:
        """Returns what computes a call; the reason if nothing ever will; or None as long as its kernels are missing."""
        known = self._known.get(call)
        if known is None:
            known = self._new(call)
            if known is None:
                return None
            self._keep(call, known)
        self._known.move_to_end(call)
        return known

    def add(self, call: OneOpCall, loaded: LoadedPlan) -> None:
        """Takes a plan that the planner has made."""
        self._keep(call, PlannedOp(self._device, loaded))

    def refuse(self, call: OneOpCall, text: str) -> None:
        """Notes that a call will never have kernels."""
        self._keep(call, text)

    def _keep(self, call: OneOpCall, known: OneOp | str) -> None:
        self._known[call] = known
        if len(self._known) > self._most_calls:
            self._known.popitem(last=False)

    def _new(self, call: OneOpCall) -> OneOp | None:
        """Returns a kernel if there is one, else the twin if it has the same bits or nothing can be compiled."""
        planned = self._planned(call)
        if planned is None and self._has_twins and (has_same_bits(call) or not self._has_compiler):
            return TwinOp(twin_of(call))
        return planned

    def _planned(self, call: OneOpCall) -> OneOp | None:
        if self._dialect is None or len(call.operands) > _MOST_OPERANDS:
            return None
        plan = build_plan(call.program(), self._dialect, most_rows=1)
        try:
            paths = self._find_kernels(plan.kernels)
            return None if paths is None else PlannedOp(self._device, self._device.load(plan, paths))
        except (ConfigurationError, ServerFault, OSError) as error:
            log.warning("a compiled kernel of %s cannot be used: %s", call.op.name, error)
            return None
