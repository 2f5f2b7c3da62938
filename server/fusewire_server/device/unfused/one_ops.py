"""Keeps what computes each call of one op: the call's loaded plan, or its twin. Device thread.

A call's plan is made here, because that takes less time than asking another process. Its kernels are compiled files
that lie on disk. If some are missing, the NumPy twin computes the call, provided that it gives the bits of a kernel, or
that nothing can be compiled. Otherwise the planner has the kernels compiled, and `add` brings the plan.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple, Protocol

from fusewire_kernels.build import build_plan
from fusewire_kernels.devices.base import Device, LoadedPlan
from fusewire_kernels.ops.small_matrices import is_of_library
from fusewire_kernels.plan.plan import Cost, KernelSource
from fusewire_kernels.unfused.one_op_call import OneOpCall
from fusewire_kernels.unfused.pieces import Piece, pieces_of
from fusewire_kernels.unfused.twins import Twin, has_same_bits, twin_of
from fusewire_protos.errors import FusewireError, ServerFault

log = logging.getLogger("fusewire.device")

MOST_CALLS = 4096
# The estimated time of a piece of a large op on a processor. An array can hold any number of seconds of work.
PIECE_NS = 10_000_000
MOST_PIECES = 1 << 12  # of an op; more of them would take longer to find than other orders may wait
# A decomposition takes some ten times as many operations as a product of its matrices, and a microsecond or more for
# each of them, however small they are.
_OPERATIONS_OF_MATRICES, _LEAST_OPERATIONS = 10, 20_000
# A transform of n points takes some 5 n log2 n operations, each of which takes as long as six of a kernel, and a
# quarter of a microsecond to begin.
_OPERATIONS_OF_POINTS, _OPERATIONS_OF_LINE = 30, 2000
# The planner makes a plan of more operands: it would take so long here that other orders would wait.
_MOST_OPERANDS = 64
_ONCE = (1,)  # the iterations of a row

# Returns the compiled file of each kernel, or None if some kernel has no file.
FindKernels = Callable[[Sequence[KernelSource]], Sequence[str] | None]


class NeverComputed(NamedTuple):
    """Nothing will ever compute a call, and why."""

    reason: str


class OneOp(Protocol):
    """What computes a call, in `pieces` pieces. It needs an arena of `arena_bytes` while it runs."""

    @property
    def pieces(self) -> int: ...

    @property
    def arena_bytes(self) -> int: ...

    @property
    def estimate_ns(self) -> int:
        """Returns the estimated time of all pieces on one processor core."""

    def run(self, piece: int, operands: Sequence[int], result: int, arena: int, starts: Sequence[int]) -> None:
        """Computes a piece of the result, after all earlier work of the device.

        The operands, the result and the arena are addresses; arrays are in C order. Raises OutOfMemory if the device
        has no memory of its own for the launch.
        """


class PlannedOp:
    """Computes a call by its plan."""

    pieces = 1

    def __init__(self, device: Device, loaded: LoadedPlan) -> None:
        self.arena_bytes = loaded.plan.arena_bytes
        self.estimate_ns = loaded.plan.cost.estimate_ns
        self._device = device
        self._loaded = loaded

    def run(self, piece: int, operands: Sequence[int], result: int, arena: int, starts: Sequence[int]) -> None:
        slot_layout = self._loaded.slot_layout
        table = slot_layout.kept_table(1)
        slot_layout.fill(table, 0, arena, operands, (result,), (), starts)
        self._device.launch(self._loaded, table, _ONCE)


class TwinOp:
    """Computes a call by its twin: by NumPy, on devices whose memory is the host's, or by the device's own library."""

    pieces = 1
    arena_bytes = 0

    def __init__(self, call: OneOpCall, twin: Twin) -> None:
        specs = (*call.operands, call.result())
        operations = _operations(call) if is_of_library(call.op, call.operands) else 0
        self.estimate_ns = Cost(operations, sum([spec.size_bytes for spec in specs])).estimate_ns
        self._twin = twin

    def run(self, piece: int, operands: Sequence[int], result: int, arena: int, starts: Sequence[int]) -> None:
        self._twin(operands, result, starts)


def _operations(call: OneOpCall) -> int:
    """Returns about how many operations a library op takes."""
    if call.op.core_rank == 1:
        return _operations_of_lines(call)
    *batch, rows, columns = call.operands[0].shape
    products = sum([prod(spec.shape) for spec in call.operands]) * min(rows, columns)
    return _OPERATIONS_OF_MATRICES * products + _LEAST_OPERATIONS * prod(batch)


def _operations_of_lines(call: OneOpCall) -> int:
    *batch, points = call.operands[0].shape
    return prod(batch) * (_OPERATIONS_OF_POINTS * points * points.bit_length() + _OPERATIONS_OF_LINE)


class OpInPieces:
    """Computes a call piece by piece, so that other orders run in between."""

    def __init__(self, parts: Sequence[tuple[Piece, OneOp]]) -> None:
        self.pieces = len(parts)
        self.arena_bytes = max([one_op.arena_bytes for _, one_op in parts])
        self.estimate_ns = sum([one_op.estimate_ns for _, one_op in parts])
        self._parts = parts

    def run(self, piece: int, operands: Sequence[int], result: int, arena: int, starts: Sequence[int]) -> None:
        (_, offsets, result_offset), one_op = self._parts[piece]
        addresses = [address + offset for address, offset in zip(operands, offsets, strict=True)]
        one_op.run(0, addresses, result + result_offset, arena, starts)


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
        self._is_gpu = device.info.is_gpu
        self._known: OrderedDict[OneOpCall, OneOp | NeverComputed] = OrderedDict()

    def find(self, call: OneOpCall) -> OneOp | NeverComputed | None:
        """Returns what computes a call; that nothing ever will; or None as long as its kernels are missing."""
        known = self._known.get(call)
        if known is None:
            known = self._new(call)
            if known is None:
                return None
            self._keep(call, known)
        self._known.move_to_end(call)
        return known

    def has_news_of(self, call: OneOpCall) -> bool:
        """Returns whether a call whose kernels were missing has been added or refused since."""
        return call in self._known

    def add(self, call: OneOpCall, loaded: LoadedPlan) -> None:
        """Takes a plan that the planner has made."""
        self._keep(call, PlannedOp(self._device, loaded))

    def refuse(self, call: OneOpCall, text: str) -> None:
        """Notes that a call will never have kernels."""
        self._keep(call, NeverComputed(text))

    def _keep(self, call: OneOpCall, known: OneOp | NeverComputed) -> None:
        self._known[call] = known
        if len(self._known) > self._most_calls:
            self._known.popitem(last=False)

    def _new(self, call: OneOpCall) -> OneOp | NeverComputed | None:
        one_op = self._whole(call)
        if one_op is None or isinstance(one_op, NeverComputed) or self._is_gpu or one_op.estimate_ns < 2 * PIECE_NS:
            return one_op
        return self._in_pieces(call, one_op)

    def _whole(self, call: OneOpCall) -> OneOp | NeverComputed | None:
        """Returns a kernel if there is one, else the twin if it has the same bits or nothing can be compiled.

        What the array library computes has no kernel.
        """
        if is_of_library(call.op, call.operands):
            return self._of_library(call)
        planned = self._planned(call)
        if planned is None and not self._is_gpu and (has_same_bits(call) or not self._has_compiler):
            return TwinOp(call, twin_of(call))
        return planned

    def _of_library(self, call: OneOpCall) -> OneOp | NeverComputed:
        try:
            return TwinOp(call, self._device.library_twin(call))
        except ServerFault as lacking:
            return NeverComputed(str(lacking))

    def _in_pieces(self, call: OneOpCall, whole: OneOp) -> OneOp:
        """Returns what computes a call in pieces of about `PIECE_NS`; the whole if it cannot be divided."""
        parts: list[tuple[Piece, OneOp]] = []
        for piece in pieces_of(call, min(whole.estimate_ns // PIECE_NS, MOST_PIECES)):
            one_op = whole if piece.call == call else self._known.get(piece.call) or self._whole(piece.call)
            if one_op is None or isinstance(one_op, NeverComputed):
                return whole
            self._keep(piece.call, one_op)
            parts.append((piece, one_op))
        return OpInPieces(parts) if len(parts) > 1 else whole

    def _planned(self, call: OneOpCall) -> OneOp | None:
        if self._dialect is None or len(call.operands) > _MOST_OPERANDS:
            return None
        plan = build_plan(call.program(), self._dialect, most_rows=1)
        try:
            paths = self._find_kernels(plan.kernels)
            return None if paths is None else PlannedOp(self._device, self._device.load(plan, paths))
        except (FusewireError, OSError) as error:
            log.warning("a compiled kernel of %s cannot be used: %s", call.op.name, error)
            return None
