"""Linked programs on the CPU: rows of tier 0 as one foreign call a slice."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fusewire_kernels.devices.base import Block
from fusewire_kernels.devices.cpu_slices import CpuPlanInSlices, JoinedDivisions, address_of
from fusewire_kernels.link import SCALAR_BYTES, is_one_launch, link
from fusewire_kernels.slots import packer
from fusewire_protos.program import Program
from fusewire_protos.signatures import Signature

if TYPE_CHECKING:
    from fusewire_kernels.devices.cpu import CpuPlan

_OPERAND_BYTES = 16  # fw_operand of runtime.c
_OPERANDS_FIELD = 2  # of fw_launch


class CpuLinker:
    """Implements `Linker`. `run_slice` is `fw_run_slice` of runtime.c."""

    def __init__(self, run_slice: Callable[..., None]) -> None:
        self._run_slice = run_slice

    def link(self, program: Program, plans: Mapping[Signature, CpuPlan]) -> CpuLinkedProgram | None:
        if not all(is_one_launch(loaded.plan, len(signature.operands)) for signature, loaded in plans.items()):
            return None
        return CpuLinkedProgram(self._run_slice, program, plans)


class CpuLinkedProgram:
    """Implements `LinkedProgram`. Its fields are those of a CpuPlan that a plan in slices needs."""

    def __init__(self, run_slice: Callable[..., None], program: Program, plans: Mapping[Signature, CpuPlan]) -> None:
        self._run_slice = run_slice
        self._plans = tuple(plans.values())  # their kernels stay loaded, and their sizes where they are
        linked = link(program)
        self.scratch_bytes, self.live_bytes = linked.scratch_bytes, linked.live_bytes
        position_of = {signature: position for position, signature in enumerate(plans)}
        positions = np.array([position_of[each] for each in program.distinct], np.int64)[program.signature_numbers]
        self._operands = linked.operands
        self._launches = np.concatenate([loaded.launches for loaded in self._plans])[positions]
        begins = linked.ends - np.diff(linked.ends, prepend=0)
        self._launches[:, _OPERANDS_FIELD] = self._operands.ctypes.data + _OPERAND_BYTES * begins
        self.launches_address = address_of(self._launches)
        self.launch_count = len(self._launches)
        self.divisions = JoinedDivisions([loaded.divisions for loaded in self._plans], positions)
        self._packers = tuple([packer(dtype) for dtype in program.scalars])
        self._write_scalars = struct.Struct(f"={len(program.scalars)}q").pack_into

    def begin(self, inputs: Sequence[Block], scalars: Sequence[int | float]) -> CpuLinkedRow:
        scratch = np.empty(self.scratch_bytes // SCALAR_BYTES, np.int64)
        bits = [pack(value) for pack, value in zip(self._packers, scalars, strict=True)]
        self._write_scalars(scratch, 0, *bits)  # type: ignore[arg-type]  # an array is a buffer
        slots = np.array([address_of(scratch), *[block.address for block in inputs]], np.int64)
        return CpuLinkedRow(self, CpuPlanInSlices(self._run_slice, self, slots), scratch.data.cast("B"))


class CpuLinkedRow:
    """Implements `LinkedRow`."""

    def __init__(self, linked: CpuLinkedProgram, under_way: CpuPlanInSlices, scratch: memoryview) -> None:
        self._linked = linked
        self._under_way = under_way
        self._scratch = scratch

    def go_on(self, most_ns: int) -> bool:
        return self._under_way.go_on(most_ns)

    def result(self, position: int) -> memoryview:
        begin, end = self._linked.live_bytes[position]
        return self._scratch[begin:end]
