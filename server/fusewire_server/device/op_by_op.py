"""Runs a row op by op, so that a new program starts before its plan is made.

The array library computes an op if the library's result has the same bits as the result of our kernels. For every other
op the planner makes the plan of a program that has only this op, and the disk cache keeps the plan. The row waits until
these plans are loaded. On a device for which no kernels can be compiled, the array library always computes every op.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from functools import partial
from typing import Any

from fusewire_kernels.devices.base import Block, Device
from fusewire_kernels.ops import interpreter
from fusewire_kernels.ops.interpreter import Kernel, OpCache, PreparedProgram
from fusewire_protos.ops.catalogue import Attributes, Op
from fusewire_protos.ops.shapes import Spec
from fusewire_server.programs.one_op_calls import OneOpCall
from fusewire_server.programs.program_table import OneOp, ProgramEntry
from fusewire_server.sessions.session import Row, Value


def op_cache_of(device: Device) -> OpCache:
    """Returns the cache of prepared ops. All programs that run op by op on the device share this cache."""
    return OpCache(device.array_library, is_library_exact=device.info.is_library_exact)


def prepare(device: Device, op_cache: OpCache, entry: ProgramEntry) -> Generator[None, None, PreparedProgram]:
    """Prepares a program that has all its one-op plans. Each resumption prepares a few ops, on the device thread."""
    kernel_of = None if device.info.dialect is None else partial(_kernel, device, entry.one_ops)
    return op_cache.prepare(entry.program, kernel_of)


def run_op_by_op(device: Device, prepared: PreparedProgram, row: Row) -> Generator[None, None, None]:
    """Runs a row after its blocks have been allocated. Each resumption runs one op, on the device thread.

    Floating-point errors may raise NumPy warnings, which the caller suppresses.
    """
    program = prepared.program
    inputs = [device.array(_block(value), spec) for value, spec in zip(row.inputs, program.inputs, strict=True)]
    results = yield from interpreter.execute(prepared, inputs, row.scalars, row.starts)
    overwritten = _overwritten(row, inputs)
    kept = [_apart(device.array_library, result, overwritten) for result in results]
    for value, index, result in zip(row.outputs, program.live, kept, strict=True):
        device.array(_block(value), program.result_spec(index))[...] = result


def _overwritten(row: Row, inputs: Sequence[Any]) -> list[Any]:
    """Returns the inputs whose blocks were given to results."""
    written = {_block(value).address for value in row.outputs}
    return [array for value, array in zip(row.inputs, inputs, strict=True) if _block(value).address in written]


def _apart(library: Any, result: Any, overwritten: Sequence[Any]) -> Any:
    """Returns the result, or a copy if it is a view of an input that another result is about to overwrite."""
    is_shared = any(library.may_share_memory(result, array) for array in overwritten)
    return result.copy() if is_shared else result


def _kernel(
    device: Device, one_ops: Mapping[OneOpCall, OneOp], op: Op, operands: tuple[Spec, ...], attributes: Attributes
) -> Kernel:
    one_op = one_ops[OneOpCall(op, operands, attributes)]
    return device.as_function(one_op.loaded, one_op.slot_layout, one_op.result)


def _block(value: Value) -> Block:
    assert value.block is not None, "a submission has all its memory before it runs"
    return value.block
