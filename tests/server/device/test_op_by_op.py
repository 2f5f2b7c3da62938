"""Tier 0 writes results when all ops have run, over inputs that die if any do, and launches loaded plans."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from fusewire_kernels.build import build_plan
from fusewire_kernels.devices.base import Block, DeviceInfo
from fusewire_kernels.devices.null import NullDevice
from fusewire_kernels.ops.interpreter import OpCache, run_to_end
from fusewire_kernels.plan.slots import SlotLayout
from fusewire_protos.ops import catalogue, dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs.codec import decode
from fusewire_protos.programs.limits import ProgramLimits
from fusewire_protos.programs.program import Program, ProgramOp, build
from fusewire_server.device.op_by_op import op_cache_of, prepare, run_op_by_op
from fusewire_server.programs.one_op_calls import OneOpCall, calls_of
from fusewire_server.programs.program_table import OneOp, ProgramEntry
from fusewire_server.sessions.session import Row, Value, ValueState
from tests.server.parts import VECTOR, chain, entry_of, session

SQUARE = Spec(dtypes.float32, (2, 2))
NUMBERS = np.array([[1, 2], [3, 4]], np.float32)


def double_and_view() -> Program:
    """A matrix in; its double, and the matrix as a vector, which is a view of it, out."""
    double = ProgramOp(catalogue.BY_NAME["add"], (0, 0), ())
    reshape = ProgramOp(catalogue.BY_NAME["reshape"], (0,), ((4,),))
    return build([SQUARE], [], [double, reshape], (0, 1))


def value_in(device: NullDevice, spec: Spec, block: Block | None = None) -> Value:
    value = Value(1, spec, ValueState.READY)
    value.block = block or device.allocate(spec.size_bytes)
    return value


@pytest.mark.parametrize("heir", [0, 1], ids=["by another result", "by itself"])
def test_a_view_of_an_input_outlives_its_being_overwritten(heir: int) -> None:
    device = NullDevice()
    program = double_and_view()
    given = value_in(device, SQUARE)
    assert given.block is not None
    device.write(given.block, memoryview(NUMBERS.tobytes()))
    outputs = [value_in(device, program.result_spec(index)) for index in program.live]
    outputs[heir].block = given.block
    entry = entry_of(program)
    prepared = run_to_end(prepare(device, op_cache_of(device), entry))
    run_to_end(run_op_by_op(device, prepared, Row(session(), entry, 1, [given], outputs, (), (), 0)))
    doubled, reshaped = [device.array(value.block, value.spec) for value in outputs if value.block is not None]
    assert reshaped.tolist() == [1, 2, 3, 4]
    assert doubled.tolist() == [[2, 4], [6, 8]]


class KernelDevice(NullDevice):
    """Has a dialect, so that inexact ops are launched."""

    @property
    def info(self) -> DeviceInfo:
        return super().info._replace(dialect="c")


def entry_with_kernels(device: NullDevice, program: Program) -> ProgramEntry:
    """With the plans of its one-op calls loaded."""
    entry = entry_of(program)
    for call in calls_of(program, is_library_exact=True):
        load_one_op(device, entry, call)
    return entry


def load_one_op(device: NullDevice, entry: ProgramEntry, call: OneOpCall) -> None:
    plan = build_plan(decode(call.raw(), ProgramLimits()), "c")
    entry.one_ops[call] = OneOp(device.load(plan, ()), SlotLayout(plan), call.result())


def test_a_plan_stays_loaded_for_as_long_as_programs_to_come_may_launch_it() -> None:
    device = KernelDevice()
    op_cache = OpCache(np, is_library_exact=True, most_ops=1)
    first, second = (entry_with_kernels(device, program) for program in (chain(["exp"]), chain(["exp", "negative"])))
    run_to_end(prepare(device, op_cache, first))
    (one_op,) = first.one_ops.values()
    loaded = weakref.ref(one_op.loaded)
    plan = one_op.loaded.plan
    del first, one_op
    gc.collect()
    assert loaded() is not None
    prepared = run_to_end(prepare(device, op_cache, second))
    given, result = value_in(device, VECTOR), value_in(device, VECTOR)
    run_to_end(run_op_by_op(device, prepared, Row(session(), second, 1, [given], [result], (), (), 0)))
    assert [launched for launched, _ in device.launched] == [plan]
    del prepared
    gc.collect()
    assert loaded() is None
