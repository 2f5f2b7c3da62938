"""Tier 0 writes results when all ops have run, over inputs that die if any do, and launches or links loaded plans."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from fusewire_kernels.build import build_plan
from fusewire_kernels.devices.base import Block, DeviceInfo, LinkedRow
from fusewire_kernels.devices.null import NullDevice
from fusewire_kernels.interpreter import Repertoire, ended
from fusewire_kernels.link import link
from fusewire_kernels.plan import Donation
from fusewire_kernels.slots import SlotLayout
from fusewire_protos import catalogue, dtypes
from fusewire_protos.program import Program, ProgramOp, build
from fusewire_protos.program_codec import ProgramLimits, decode
from fusewire_protos.shapes import Spec
from fusewire_protos.signatures import Signature
from fusewire_server.calls import OneOpCall, calls_of
from fusewire_server.linked_rows import LinkedRows
from fusewire_server.op_by_op import OpByOp, Tier0
from fusewire_server.orders import Order
from fusewire_server.programs import OneOp, ProgramEntry
from fusewire_server.room import Room
from fusewire_server.slices import Line
from fusewire_server.tier0 import donations, link_if_all_is_there, prepare, repertoire_of, run_op_by_op
from fusewire_server.work import Row, Value, ValueState
from tests.server.parts import VECTOR, addition, chain, entry_of, pair, session

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


def test_each_dying_input_makes_place_for_one_result_of_its_size() -> None:
    assert [donation.input for donation in donations(pair(), [0, 1])] == [0, 1]
    assert len({donation.position for donation in donations(pair(), [0, 1])}) == 2
    assert donations(chain(), [0]) == [Donation(0, 0)]
    assert donations(chain(), []) == []


def test_of_more_dying_inputs_than_results_some_stay() -> None:
    assert donations(addition(), [0, 1]) == [Donation(0, 0)]


def test_results_of_another_size_may_not() -> None:
    total = ProgramOp(catalogue.BY_NAME["sum"], (0,), ((0,), False))
    assert donations(build([SQUARE], [], [total], (0,)), [0]) == []


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
    steps = ended(prepare(device, repertoire_of(device), entry))
    ended(run_op_by_op(device, steps, Row(session(), entry, 1, [given], outputs, (), (), 0)))
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
    repertoire = Repertoire(np, most_ops=1)
    first, second = (entry_with_kernels(device, program) for program in (chain(["exp"]), chain(["exp", "negative"])))
    ended(prepare(device, repertoire, first))
    (one_op,) = first.one_ops.values()
    loaded = weakref.ref(one_op.loaded)
    plan = one_op.loaded.plan
    del first, one_op
    gc.collect()
    assert loaded() is not None
    steps = ended(prepare(device, repertoire, second))
    given, result = value_in(device, VECTOR), value_in(device, VECTOR)
    ended(run_op_by_op(device, steps, Row(session(), second, 1, [given], [result], (), (), 0)))
    assert [launched for launched, _ in device.launched] == [plan]
    del steps
    gc.collect()
    assert loaded() is None


class FakeLinked:
    """Implements `LinkedProgram`; no row of it ever begins."""

    scratch_bytes = 64

    def begin(self, inputs: Sequence[Block], scalars: Sequence[int | float]) -> LinkedRow:
        raise NotImplementedError


@dataclass
class FakeLinker:
    """Implements `Linker`. `given` is what it was to link."""

    refuses: bool = False
    given: list[tuple[Program, Mapping[Signature, Any]]] = field(default_factory=list)

    def link(self, program: Program, plans: Mapping[Signature, Any]) -> FakeLinked | None:
        self.given.append((program, plans))
        return None if self.refuses else FakeLinked()


class LinkingDevice(KernelDevice):
    def __init__(self, *, refuses: bool = False) -> None:
        super().__init__()
        self.fake_linker = FakeLinker(refuses)

    @property
    def linker(self) -> Any:
        return self.fake_linker


def tier0_of(device: NullDevice) -> Tier0:
    line: Line[Order] = Line()
    return Tier0(device, Room(device, line))


def call_of(signature: Signature) -> OneOpCall:
    return OneOpCall(signature.op, signature.operands, signature.attributes)


def entry_with_all(device: NullDevice, program: Program) -> ProgramEntry:
    """With the plans of all its ops loaded, those too that the library computes."""
    entry = entry_of(program)
    for signature in dict.fromkeys(program.signatures):
        load_one_op(device, entry, call_of(signature))
    return entry


def test_rows_are_linked_once_the_plans_of_all_ops_are_there_and_go_op_by_op_before() -> None:
    device = LinkingDevice()
    tier0, entry = tier0_of(device), entry_of(chain(["negative", "exp", "negative"]))
    negative, exp, _ = entry.program.signatures
    assert isinstance(tier0.way(entry), OpByOp)
    load_one_op(device, entry, call_of(exp))
    assert isinstance(tier0.way(entry), OpByOp)
    assert not device.fake_linker.given
    load_one_op(device, entry, call_of(negative))
    assert isinstance(tier0.way(entry), LinkedRows)
    assert device.fake_linker.given == [
        (entry.program, {each: entry.one_ops[call_of(each)].loaded for each in (negative, exp)})
    ]


def test_a_program_is_linked_once_for_all_its_runs() -> None:
    device = LinkingDevice()
    tier0, entry = tier0_of(device), entry_with_all(device, pair())
    assert all(isinstance(tier0.way(entry), LinkedRows) for _ in range(3))
    assert len(device.fake_linker.given) == 1


def test_a_program_that_is_refused_goes_op_by_op_and_is_tried_again_only_when_another_plan_has_come() -> None:
    device = LinkingDevice(refuses=True)
    tier0, entry = tier0_of(device), entry_with_all(device, chain(["exp"]))
    assert all(isinstance(tier0.way(entry), OpByOp) for _ in range(3))
    assert len(device.fake_linker.given) == 1
    load_one_op(device, entry, call_of(chain(["tanh"]).signatures[0]))
    assert all(isinstance(tier0.way(entry), OpByOp) for _ in range(3))
    assert len(device.fake_linker.given) == 2


def test_while_a_plan_is_missing_nobody_looks_for_it_again_until_one_has_come(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []

    def counted(linker: FakeLinker, entry: ProgramEntry) -> FakeLinked | None:
        looked.append(len(entry.one_ops))
        return None

    monkeypatch.setattr("fusewire_server.op_by_op.link_if_all_is_there", counted)
    device = LinkingDevice()
    tier0, entry = tier0_of(device), entry_of(chain(["negative", "exp"]))
    for signature in (None, *entry.program.signatures):
        if signature is not None:
            load_one_op(device, entry, call_of(signature))
        for _ in range(3):
            tier0.way(entry)
    assert looked == [1, 2]


def test_rows_go_op_by_op_on_a_device_that_links_nothing() -> None:
    device = KernelDevice()
    assert isinstance(tier0_of(device).way(entry_with_all(device, chain(["exp"]))), OpByOp)


def test_plans_of_other_ops_make_up_for_none_that_is_missing() -> None:
    device = LinkingDevice()
    entry = entry_with_all(device, chain(["tanh", "exp"]))
    entry.program = chain(["negative", "exp"])
    assert link_if_all_is_there(device.fake_linker, entry) is None
    assert not device.fake_linker.given


def test_a_program_with_an_op_of_more_than_one_kernel_is_not_linked_whatever_plans_are_there() -> None:
    device = LinkingDevice()
    concat = ProgramOp(catalogue.BY_NAME["concat"], (0, 0), (0,))
    entry = entry_with_all(device, build([VECTOR], [], [concat], (0,)))
    assert link_if_all_is_there(device.fake_linker, entry) is None
    assert not device.fake_linker.given


def test_what_was_linked_goes_with_its_program() -> None:
    device = LinkingDevice()
    tier0, entry = tier0_of(device), entry_with_all(device, chain(["exp"]))
    tier0.way(entry).leave()
    linked = weakref.ref(tier0.known(entry).linked)
    assert linked() is not None
    del entry
    device.fake_linker.given.clear()
    gc.collect()
    assert linked() is None


def test_a_program_that_may_be_linked_runs_op_by_op_where_room_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    device, program = LinkingDevice(), chain(["negative"] * 20)
    monkeypatch.setattr(FakeLinked, "scratch_bytes", link(program).scratch_bytes)
    device._memory_bytes = 20 * VECTOR.size_bytes
    room = Room(device, Line[Order]())
    row = Row(session(), entry_of(program), 1, [value_in(device, VECTOR)], [value_in(device, VECTOR)], (), (), 0)
    assert Tier0(device, room).way(entry_with_all(device, program)).begin(row)
