"""Runs of loops: by a persistent kernel if the device has one for them, otherwise launch by launch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fusewire_kernels.build import build_plan
from fusewire_kernels.devices.null import NullDevice, NullPlan
from fusewire_kernels.plan.loop_table import LoopTable
from fusewire_kernels.plan.plan import Column, InputColumn, OutputColumn, ScalarColumn
from fusewire_protos.errors import OutOfMemory
from fusewire_protos.frames import HANDLES_PER_RECORDER, Segment
from fusewire_protos.ops import dtypes
from fusewire_protos.programs.program import Program
from fusewire_server.device.completion import Completion
from fusewire_server.device.executor import Executor
from fusewire_server.device.joined_reports import JoinedReports
from fusewire_server.device.memory.allocation import Allocation
from fusewire_server.device.memory.device_memory import DeviceMemory
from fusewire_server.device.orders import Order, Ran, Report, Run, Submission
from fusewire_server.device.unfused.one_ops import OneOps
from fusewire_server.programs.program_table import ProgramEntry
from fusewire_server.scheduling.unfinished_orders import UnfinishedOrders
from fusewire_server.sessions.entries.loop import iterations_of
from fusewire_server.sessions.session import Row, Value, ValueState
from tests.kernels.loops_of_note import recurrent
from tests.kernels.programs import Writer
from tests.segments import loop_of
from tests.server.parts import entry_of, session, whole

BASE, OPS = HANDLES_PER_RECORDER, 4
FULL = OutOfMemory("no memory for the table")


class PersistentDevice(NullDevice):
    """Has persistent kernels, which keep the tables that they are launched with."""

    def __init__(self, *, takes: bool = True, has_kernels: bool = True) -> None:
        super().__init__()
        self._has_kernels = has_kernels
        self.takes = takes
        self.is_full = False
        self.asked: list[LoopTable] = []
        self.tables: list[LoopTable] = []

    @property
    def persistent_kernels(self) -> Any:
        return Kernels(self) if self._has_kernels else None

    def launch(self, loaded: NullPlan, table: npt.NDArray[np.int64], counts: Sequence[int]) -> None:
        if self.is_full:
            raise FULL
        super().launch(loaded, table, counts)


@dataclass
class Kernels:
    """Implements `PersistentKernels`."""

    device: PersistentDevice

    def can_run(self, _: NullPlan, table: LoopTable) -> bool:
        self.device.asked.append(table)
        return self.device.takes

    def launch(self, _: NullPlan, table: LoopTable) -> None:
        if self.device.is_full:
            raise FULL
        self.device.tables.append(table)


@dataclass
class World:
    """An executor, whose device ends all work at once."""

    device: PersistentDevice = field(default_factory=PersistentDevice)
    program: Program = field(default_factory=lambda: recurrent(1, 64))
    reports: list[Report] = field(default_factory=list)

    def __post_init__(self) -> None:
        unfinished: UnfinishedOrders[Order] = UnfinishedOrders()
        self.memory = DeviceMemory(self.device, unfinished)
        reports = JoinedReports(self.reports.append)
        completion = Completion(self.device, reports, lambda: True)
        allocation = Allocation(self.device, self.memory)
        one_ops = OneOps(self.device, lambda _: None)
        self.executor = Executor(self.device, self.memory, allocation, completion, reports, one_ops)
        self.entry: ProgramEntry = entry_of(self.program)
        self.plan = build_plan(self.program, "cuda")
        self.entry.loaded = self.device.load(self.plan, ())

    def row(self, iterations: int, *, kept: int = 1, **stepped: Any) -> Row:
        """A loop, whose inputs have their memory and whose results have none yet."""
        inputs = [Value(number, spec, ValueState.READY) for number, spec in enumerate(self.program.inputs)]
        for value in inputs:
            value.block = self.memory.allocate(value.size_bytes)
        scalars = (0.5,) * len(self.program.scalars)
        row = Row(session(), self.entry, BASE, inputs, [], scalars, (), 0)
        first = Segment(0, BASE, tuple(value.handle for value in inputs), scalars, (), ())
        row.iterations = iterations_of(loop_of(first, iterations, OPS, (kept,), **stepped), row, 0)
        row.outputs = row.iterations.outputs
        return row

    def run(self, spans: dict[Row, range]) -> Ran:
        """Runs the spans of rows. Returns the report of the run."""
        submission = Submission(self.entry, self.entry.loaded, spans, ((),) * len(spans), ())
        self.executor.act(Run(7, submission))
        report = self.reports.pop()
        assert isinstance(report, Ran)
        assert not self.reports
        return report

    def run_whole(self, *rows: Row) -> Ran:
        return self.run(whole(*rows))

    def column(self, wanted: Column) -> int:
        """Returns the index of a column. Columns of two kinds are equal if their fields are."""
        columns = [(type(column), column) for column in self.plan.columns]
        return columns.index((type(wanted), wanted))


def address(value: Value) -> int:
    assert value.block is not None
    return value.block.address


def test_a_loop_is_one_launch_if_the_persistent_kernel_can_run_it() -> None:
    world = World()
    row = world.row(1000)
    assert not world.run_whole(row).failed
    (table,) = world.device.tables
    assert (list(table.counts), table.slots.shape[1:]) == ([1000], (1, len(world.plan.columns)))
    assert not world.device.launched


def test_the_table_names_the_memory_of_the_row() -> None:
    world = World()
    row = world.row(10)
    world.run_whole(row)
    (table,) = world.device.tables
    first, last = table.slots[0, 0], table.slots[-1, 0]
    assert [first[world.column(InputColumn(number))] for number in range(3)] == [*map(address, row.inputs)]
    assert last[world.column(OutputColumn(0))] == address(row.outputs[0])


@pytest.mark.parametrize(
    "device", [PersistentDevice(takes=False), PersistentDevice(has_kernels=False)], ids=["declined", "none"]
)
def test_a_loop_that_no_persistent_kernel_can_run_is_launched_iteration_by_iteration(device: PersistentDevice) -> None:
    world = World(device)
    assert not world.run_whole(world.row(10)).failed
    assert not device.tables
    assert [rows for _, rows in device.launched] == [1] * 10


def test_a_slice_of_one_iteration_is_launched_as_a_segment_is() -> None:
    world = World()
    row = world.row(3)
    assert not world.run({row: range(1)}).failed
    assert not world.device.asked
    assert [rows for _, rows in world.device.launched] == [1]


def test_a_loop_that_finds_no_memory_for_a_later_slice_gives_back_that_of_its_results() -> None:
    device = PersistentDevice()
    world = World(device)
    row = world.row(10)
    assert not world.run({row: range(5)}).failed
    held = row.inputs[0]
    world.memory.release((held,))
    held.state = ValueState.STAND_IN
    device.live_bytes += (free_bytes := device.info.memory_bytes - device.live_bytes)
    (failed,) = world.run({row: range(5, 10)}).failed
    device.live_bytes -= free_bytes
    assert failed.case == "out_of_memory"
    assert all(value.block is None for value in row.outputs)
    world.memory.release((*row.inputs, *row.outputs))
    assert (world.memory.count().live_bytes, device.live_bytes) == (0, 0)


def test_a_plan_without_a_persistent_kernel_is_launched_though_the_device_has_kernels() -> None:
    writer = Writer()
    x, w = writer.input(4, 4), writer.input(4, 4)
    following = writer.sum(writer.tanh(writer.matmul(x, w)), axes=(0,), keepdims=True)
    spread = writer.add(x, following)
    world = World(program=writer.program(spread, carried=[(x, spread)]))
    assert world.plan.persistent is None
    world.run_whole(world.row(3))
    assert not world.device.asked
    assert len(world.device.launched) == 3


def test_rows_of_other_counts_share_a_launch_the_longest_first() -> None:
    world = World()
    rows = [world.row(count) for count in (3, 40, 17, 40)]
    assert not world.run_whole(*rows).failed
    (table,) = world.device.tables
    assert list(table.counts) == [40, 40, 17, 3]
    weights = table.slots[0, :, world.column(InputColumn(1))].tolist()
    assert weights == [address(rows[number].inputs[1]) for number in (1, 3, 2, 0)]
    results = table.slots[-1, :, world.column(OutputColumn(0))].tolist()
    assert results == [address(rows[number].outputs[0]) for number in (1, 3, 2, 0)]


def test_rows_of_other_counts_drop_out_of_launches_as_they_end() -> None:
    world = World(PersistentDevice(takes=False))
    assert not world.run_whole(*[world.row(count) for count in (1, 5, 3)]).failed
    assert [rows for _, rows in world.device.launched] == [3, 2, 2, 1, 1]


def test_slices_of_rows_have_the_counts_of_the_slices_and_the_memory_of_the_first() -> None:
    world = World()
    one, other = world.row(10), world.row(1000)
    world.run({one: range(4), other: range(4)})
    addresses = [*map(address, (*one.outputs, *other.outputs))]
    assert not world.run({one: range(4, 10), other: range(4, 900)}).failed
    assert [list(table.counts) for table in world.device.tables] == [[4, 4], [896, 6]]
    assert [*map(address, (*one.outputs, *other.outputs))] == addresses
    last = world.device.tables[-1].slots[-1, :, world.column(OutputColumn(0))].tolist()
    at_899 = other.at(899).outputs[0]
    assert last == [address(at_899), address(one.outputs[0])]


def test_what_steps_is_in_the_table_of_each_iteration() -> None:
    world = World()
    world.run_whole(world.row(4, kept=4, scalars=((0, (0.5, 0.25)),)))
    (table,) = world.device.tables
    scalar = world.column(ScalarColumn(0, dtypes.float32))
    values = table.slots[:, 0, scalar].astype(np.int32).view(np.float32).tolist()
    assert values == [0.5, 0.25, 0.5, 0.25]
    assert scalar in table.moving


@pytest.mark.parametrize("takes", [True, False], ids=["at once", "one by one"])
def test_a_launch_without_memory_fails_its_rows_and_nothing_else(takes: bool) -> None:
    world = World(PersistentDevice(takes=takes))
    other = world.row(5)
    rows = [world.row(10), world.row(3)]
    world.device.is_full = True
    live_bytes = world.memory.count().live_bytes
    report = world.run_whole(*rows)
    assert {(failed.row, failed.case, failed.text) for failed in report.failed} == {
        (row, "out_of_memory", str(FULL)) for row in rows
    }
    assert world.memory.count().live_bytes == live_bytes
    assert all(value.block is None for row in rows for value in row.outputs)
    assert all(value.block is not None for row in rows for value in row.inputs)
    world.device.is_full = False
    assert not world.run_whole(other).failed


def test_a_row_that_finds_no_memory_fails_alone_and_the_others_are_launched() -> None:
    world = World()
    large = world.row(5, kept=5)
    rows = [world.row(10), large]
    world.device._memory_bytes = world.device.live_bytes + 2 * rows[0].outputs[0].size_bytes
    report = world.run_whole(*rows)
    assert [(failed.row, failed.case) for failed in report.failed] == [(large, "out_of_memory")]
    (table,) = world.device.tables
    assert list(table.counts) == [10]


def test_a_loop_that_lost_its_memory_in_one_slice_fails_in_the_next() -> None:
    world = World()
    row = world.row(10)
    world.run({row: range(3)})
    world.device.is_full = True
    assert world.run({row: range(3, 6)}).failed
    world.device.is_full = False
    assert [failed.case for failed in world.run({row: range(6, 10)}).failed] == ["out_of_memory"]
    assert len(world.device.tables) == 1
