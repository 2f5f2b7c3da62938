"""Runs a row op by op, so that a new program starts before its plan is made.

The array library computes where its bits are ours. Every other op runs as the plan of a program of that one op,
which the planner prepares (and the disk cache keeps); until those plans are there the row waits. On a device for which
nothing can be compiled the array library's twin computes it, for the process's whole life.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from fusewire_kernels.devices.base import Block, Device
from fusewire_kernels.ops import interpreter
from fusewire_kernels.ops.interpreter import Kernel, OpCache, PreparedProgram
from fusewire_kernels.plan.plan import Donation
from fusewire_protos.catalogue import Attributes, Op
from fusewire_protos.program import Program
from fusewire_protos.shapes import Spec
from fusewire_server.programs.one_op_calls import OneOpCall
from fusewire_server.programs.program_table import OneOp, ProgramEntry
from fusewire_server.sessions.session import Row, Value


def op_cache_of(device: Device) -> OpCache:
    """What all programs share that run op by op on a device."""
    return OpCache(device.array_library, is_library_exact=device.info.is_library_exact)


def prepare(device: Device, op_cache: OpCache, entry: ProgramEntry) -> Generator[None, None, PreparedProgram]:
    """Makes a program ready whose one-op plans are all there, a few ops each time it is resumed. Device thread."""
    kernel_of = None if device.info.dialect is None else partial(_kernel, device, entry.one_ops)
    return op_cache.prepare(entry.program, kernel_of)


def run_op_by_op(device: Device, prepared: PreparedProgram, row: Row) -> Generator[None, None, None]:
    """Runs a row whose buffers are allocated, an op each time it is resumed. Device thread.

    Floating-point errors may warn: whoever resumes it ignores them.
    """
    program = prepared.program
    inputs = [device.array(_block(value), spec) for value, spec in zip(row.inputs, program.inputs, strict=True)]
    results = yield from interpreter.execute(prepared, inputs, row.scalars, row.starts)
    overwritten = _overwritten(row, inputs)
    kept = [_apart(device.array_library, result, overwritten) for result in results]
    for value, index, result in zip(row.outputs, program.live, kept, strict=True):
        device.array(_block(value), program.result_spec(index))[...] = result


def donations(program: Program, dying: Iterable[int]) -> list[Donation]:
    """Op by op any result may be written over any input of its size: it is written when all ops have run.

    Pairs as many of the `dying` inputs as there are results of their sizes; every input and result once at most.
    """
    positions: defaultdict[int, list[int]] = defaultdict(list)  # by size in bytes
    for position, index in enumerate(program.live):
        positions[program.result_spec(index).size_bytes].append(position)
    fitting = [(number, positions[program.inputs[number].size_bytes]) for number in dying]
    return [Donation(number, places.pop()) for number, places in fitting if places]


def _overwritten(row: Row, inputs: Sequence[Any]) -> list[Any]:
    """Those of the inputs whose buffers have been handed on to results."""
    written = {_block(value).address for value in row.outputs}
    return [array for value, array in zip(row.inputs, inputs, strict=True) if _block(value).address in written]


def _apart(library: Any, result: Any, overwritten: Sequence[Any]) -> Any:
    """The result, copied if it is a view of what another result is about to be written over."""
    is_shared = any(library.may_share_memory(result, array) for array in overwritten)
    return result.copy() if is_shared else result


def _kernel(
    device: Device, one_ops: Mapping[OneOpCall, OneOp], op: Op, operands: tuple[Spec, ...], attributes: Attributes
) -> Kernel:
    one_op = one_ops[OneOpCall(op, operands, attributes)]
    return device.as_function(one_op.loaded, one_op.slot_layout, one_op.result)


def _block(value: Value) -> Block:
    assert value.block is not None, "all memory of a submission is allocated before it runs"
    return value.block
