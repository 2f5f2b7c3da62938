"""Rows of linked programs: what they reserve, how long they are told to run, and when their results are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from fusewire_kernels.devices.base import Block
from fusewire_kernels.devices.null import NullDevice
from fusewire_protos import dtypes
from fusewire_protos.errors import OutOfMemory
from fusewire_protos.program import Program, build
from fusewire_protos.shapes import Spec
from fusewire_server.linked_rows import LinkedRows
from fusewire_server.orders import Order, Release
from fusewire_server.room import Demand, Reservation, Room
from fusewire_server.slices import Line
from fusewire_server.work import Row, Value, ValueState
from tests.server.parts import SIZE_BYTES, VECTOR, VECTOR_BYTES, chain, entry_of, op, scaling, session
from tests.server.world import Clock

SCRATCH_BYTES = 6 * SIZE_BYTES
UNTIL_NS = 1_000_000
SLICES = 3


@dataclass(eq=False)
class FakeRow:
    """Implements `LinkedRow`: ends with its last slice. Each result is its own byte over and over."""

    sizes_bytes: Sequence[int]
    slices_left: int = SLICES
    told_ns: list[int] = field(default_factory=list)

    def go_on(self, most_ns: int) -> bool:
        self.told_ns.append(most_ns)
        self.slices_left -= 1
        return self.slices_left == 0

    def result(self, position: int) -> memoryview:
        assert self.slices_left == 0, "a row has results when it has ended"
        return memoryview(result_bytes(position, self.sizes_bytes[position]))


def result_bytes(position: int, size_bytes: int = SIZE_BYTES) -> bytes:
    return bytes([position + 1]) * size_bytes


@dataclass(eq=False)
class FakeLinked:
    """Implements `LinkedProgram`."""

    program: Program
    scratch_bytes: int = SCRATCH_BYTES
    fault: MemoryError | None = None
    begun: list[FakeRow] = field(default_factory=list)
    given: list[tuple[Sequence[Block], Sequence[int | float]]] = field(default_factory=list)

    def begin(self, inputs: Sequence[Block], scalars: Sequence[int | float]) -> FakeRow:
        if self.fault is not None:
            raise self.fault
        self.given.append((inputs, scalars))
        self.begun.append(FakeRow([self.program.result_spec(index).size_bytes for index in self.program.live]))
        return self.begun[-1]


class World:
    """A run of linked rows, beside another order that is unfinished, as is its own."""

    def __init__(self, program: Program | None = None) -> None:
        self.program = program or chain()
        self.device = NullDevice()
        line: Line[Order] = Line()
        line.admit(Release(frozenset(), ()), [session("other")], goes_in_slices=True)
        self.room = Room(self.device, line)
        self.linked = FakeLinked(self.program)
        self.rows = LinkedRows(self.device, self.room, self.linked)

    @property
    def reserved_bytes(self) -> int:
        return self.room._reserved_bytes

    def row(self, *scalars: float) -> Row:
        """One whose buffers are allocated."""
        program = self.program
        inputs = [self.value(spec) for spec in program.inputs]
        outputs = [self.value(program.result_spec(index)) for index in program.live]
        return Row(session(), entry_of(program), 1, inputs, outputs, scalars, (), 0)

    def value(self, spec: Spec) -> Value:
        value = Value(1, spec, ValueState.READY)
        value.block = self.room.allocate(spec.size_bytes)
        return value

    def begin(self, *scalars: float) -> Row:
        """A row that has begun."""
        row = self.row(*scalars)
        assert self.rows.begin(row)
        return row

    def go_on_to_the_end(self) -> None:
        for _ in range(SLICES - 1):
            assert not self.rows.go_on(UNTIL_NS)
        assert self.rows.go_on(UNTIL_NS)

    def leave_free(self, size_bytes: int) -> None:
        """Memory holds so much beside what is live and reserved now."""
        self.device._memory_bytes = self.room.live_bytes + self.reserved_bytes + size_bytes

    def other(self, size_bytes: int) -> Reservation:
        """Another run's reservation, made."""
        reservation = self.room.enter(Demand(size_bytes, lambda: size_bytes), lambda: None)
        assert self.room.reserve(reservation)
        return reservation

    def written(self, row: Row) -> list[bytes]:
        return [bytes(self.device.read(block_of(value), value.size_bytes).data()) for value in row.outputs]


def block_of(value: Value) -> Block:
    assert value.block is not None
    return value.block


def test_results_are_written_by_position_when_the_row_has_ended() -> None:
    total = op("sum", 0)._replace(attributes=((0,), False))
    here = World(build([VECTOR], [], [op("negative", 0), op("exp", 1), total], (0, 2)))
    row = here.begin()
    for _ in range(SLICES - 1):
        assert not here.rows.go_on(UNTIL_NS)
        assert here.written(row) == [VECTOR_BYTES, bytes(4)]
    assert here.rows.go_on(UNTIL_NS)
    assert here.written(row) == [result_bytes(0), result_bytes(1, 4)]


def test_results_may_be_written_over_inputs() -> None:
    here = World()
    row = here.row()
    row.outputs[0].block = row.inputs[0].block
    assert here.rows.begin(row)
    here.go_on_to_the_end()
    assert here.written(row) == [result_bytes(0)]


def test_a_row_that_is_stopped_before_its_end_has_written_nothing_and_reserves_nothing() -> None:
    here = World()
    row = here.begin()
    here.rows.go_on(UNTIL_NS)
    assert (here.rows.is_under_way, here.reserved_bytes) == (True, SCRATCH_BYTES)
    here.rows.stop()
    assert (here.rows.is_under_way, here.reserved_bytes) == (False, 0)
    assert here.written(row) == [VECTOR_BYTES]


def test_rows_follow_one_another_each_from_its_beginning() -> None:
    here = World()
    for _ in range(2):
        row = here.begin()
        here.go_on_to_the_end()
        here.rows.stop()
        assert here.written(row) == [result_bytes(0)]
    assert [one.slices_left for one in here.linked.begun] == [0, 0]
    assert here.reserved_bytes == 0


def test_a_row_is_given_the_blocks_of_its_inputs_and_its_scalars() -> None:
    here = World(scaling())
    row = here.begin(2.5)
    assert here.linked.given == [([row.inputs[0].block], (2.5,))]


@pytest.mark.parametrize("scratch_bytes", [0, SIZE_BYTES, SCRATCH_BYTES])
def test_a_row_reserves_its_scratch_memory_and_no_more(scratch_bytes: int) -> None:
    here = World()
    here.linked.scratch_bytes = scratch_bytes
    here.rows = LinkedRows(here.device, here.room, here.linked)
    assert here.reserved_bytes == 0
    row = here.row()
    here.leave_free(scratch_bytes)
    assert here.rows.begin(row)
    assert here.reserved_bytes == scratch_bytes


def test_a_row_waits_until_another_run_has_left_it_room() -> None:
    here = World()
    row = here.row()
    other = here.other(SCRATCH_BYTES)
    here.leave_free(SCRATCH_BYTES - 1)
    assert not here.rows.begin(row)
    assert (here.rows.is_under_way, here.linked.begun, here.reserved_bytes) == (False, [], SCRATCH_BYTES)
    here.room.unreserve(other)
    assert here.rows.begin(row)
    here.go_on_to_the_end()
    assert here.written(row) == [result_bytes(0)]


def test_a_row_for_which_there_never_is_room_is_refused() -> None:
    here = World()
    row = here.row()
    here.leave_free(SCRATCH_BYTES - 1)
    with pytest.raises(OutOfMemory, match=f"{SCRATCH_BYTES} bytes"):
        here.rows.begin(row)
    here.rows.stop()
    assert (here.rows.is_under_way, here.linked.begun, here.reserved_bytes) == (False, [], 0)


def test_a_row_that_the_host_has_no_memory_for_reserves_nothing_once_it_is_stopped() -> None:
    here = World()
    here.linked.fault = MemoryError("no room on the host")
    with pytest.raises(MemoryError, match="on the host"):
        here.rows.begin(here.row())
    assert not here.rows.is_under_way
    here.rows.stop()
    assert here.reserved_bytes == 0
    here.linked.fault = None
    row = here.begin()
    here.go_on_to_the_end()
    assert here.written(row) == [result_bytes(0)]


def test_a_row_whose_scratch_memory_has_gone_to_others_begins_anew() -> None:
    here = World()
    row = here.begin()
    here.rows.go_on(UNTIL_NS)
    here.leave_free(0)
    taken = here.room.allocate(SIZE_BYTES)
    assert (here.rows.is_under_way, here.reserved_bytes) == (False, 0)
    assert here.written(row) == [VECTOR_BYTES]
    here.room.give_back(taken)
    assert here.rows.begin(row)
    here.go_on_to_the_end()
    assert [one.slices_left for one in here.linked.begun] == [SLICES - 1, 0]
    assert here.written(row) == [result_bytes(0)]


def test_a_slice_is_told_how_much_time_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr("fusewire_server.linked_rows.time", clock)
    here = World()
    here.begin()
    for now_ns in (100, 400, UNTIL_NS + 5):
        clock.now_ns = now_ns
        here.rows.go_on(UNTIL_NS)
    assert here.linked.begun[0].told_ns == [UNTIL_NS - 100, UNTIL_NS - 400, -5]


def test_a_run_that_leaves_takes_its_reservation_with_it() -> None:
    here = World()
    here.begin()
    here.rows.leave()
    assert (here.reserved_bytes, here.room._reservations) == (0, [])


def test_a_row_without_inputs_has_its_results() -> None:
    here = World(build([], [dtypes.float32], [op("negative", 0)], (0,)))
    row = here.begin(1.0)
    here.go_on_to_the_end()
    assert (here.written(row), here.linked.given) == ([result_bytes(0, 4)], [([], (1.0,))])
