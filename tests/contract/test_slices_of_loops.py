"""However the iterations of loops are divided among submissions, with whichever rows, their bytes stay the same."""

from __future__ import annotations

import queue
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fusewire_kernels.devices.base import Device, LaunchCounts, LoadedPlan
from fusewire_kernels.devices.graph_cache import USES_BEFORE
from fusewire_protos.frames import HANDLES_PER_RECORDER, Scalar, Segment, Steps
from fusewire_protos.ops import dtypes
from fusewire_protos.programs.program import Program, ProgramOp, build
from fusewire_server.device.completion import Completion
from fusewire_server.device.device_time import DeviceTime
from fusewire_server.device.executor import Executor
from fusewire_server.device.joined_reports import JoinedReports
from fusewire_server.device.memory.allocation import Allocation
from fusewire_server.device.memory.device_memory import DeviceMemory
from fusewire_server.device.orders import Order, Ran, Report, Run, Submission
from fusewire_server.device.unfused.one_ops import OneOps
from fusewire_server.device.unfused.program import UnfusedProgram
from fusewire_server.device.unfused.run import UnfusedRun
from fusewire_server.programs.program_table import ProgramEntry
from fusewire_server.scheduling.time_shares import Progress
from fusewire_server.scheduling.unfinished_orders import UnfinishedOrders
from fusewire_server.sessions.entries.loop import iterations_of
from fusewire_server.sessions.session import Row, Value, ValueState
from tests.contract.harness import Runner
from tests.effort import of_a_hundred
from tests.kernels.loops_of_note import gated, leaky, pointwise, recurrent
from tests.kernels.programs import Writer, random_inputs
from tests.patience import HANGS_S
from tests.segments import loop_of
from tests.server.parts import entry_of, session
from tests.strategies import Work

Array = npt.NDArray[Any]

BASE = HANDLES_PER_RECORDER
_WITHIN_S = HANGS_S
_FIRST_SCALARS = {dtypes.float16: 0.5, dtypes.float32: 0.75, dtypes.int32: 2}
_FIRST_START = 2


def lagging() -> Program:
    """The x after next is tanh(x) + rows[start : start + 1] · s − the next x, and its sum is live too."""
    writer = Writer()
    older, newer, rows = writer.input(1, 6), writer.input(1, 6), writer.input(12, 6)
    s = writer.scalar()
    window = writer.slice(rows, (0,), (1,))
    following = writer.subtract(writer.add(writer.tanh(older), writer.multiply(window, s)), newer)
    total = writer.sum(following, axes=(0, 1), keepdims=False)
    return writer.program(following, total, carried=[(older, newer), (newer, following)])


def moving() -> Program:
    """x = x − (what y was in the iteration before), y = y · k + n with an integer k: y is bound in each iteration."""
    writer = Writer()
    x, y, before = (writer.input(40, dtype=dtypes.int32) for _ in range(3))
    k = writer.scalar(dtypes.int32)
    following = writer.subtract(writer.multiply(x, k), before)
    return writer.program(following, carried=[(x, following), (before, y)])


PROGRAMS = {
    "recurrent": recurrent(2, 33),
    "leaky": leaky(3, 33),
    "gated": gated(3, 33),
    "pointwise": pointwise(),
    "lagging": lagging(),
    "moving": moving(),
}


class Bindings(NamedTuple):
    """What a loop binds: the arrays of its inputs, then the further arrays of its stepped inputs."""

    iterations: int
    kept: tuple[int, ...]
    arrays: Sequence[Array]
    inputs: tuple[tuple[int, Steps], ...]
    scalars: tuple[tuple[int, Steps], ...]
    starts: tuple[tuple[int, Steps], ...]


def first_scalars(program: Program) -> tuple[Scalar, ...]:
    return tuple(_FIRST_SCALARS[dtype] for dtype in program.scalars)


# ---- what each iteration gives by itself ----


def one_by_one(runner: Runner, program: Program, loop: Bindings, *, op_by_op: bool = False) -> list[list[Array]]:
    """The live results of each iteration, each of which runs by itself."""
    run = runner.run_op_by_op if op_by_op else runner.run
    results: list[list[Array]] = []
    for iteration in range(loop.iterations):
        inputs = tuple(_input(program, loop, results, number, iteration) for number in range(len(program.inputs)))
        scalars = _stepped(first_scalars(program), loop.scalars, iteration)
        starts = _stepped((_FIRST_START,) * program.starts, loop.starts, iteration)
        results.append(run(Work(program, inputs, scalars, starts)))
    return results


def _input(program: Program, loop: Bindings, results: Sequence[Sequence[Array]], number: int, iteration: int) -> Array:
    source_of = dict(program.carried)
    if number in source_of and iteration > 0:
        source = source_of[number]
        if source < len(program.inputs):
            return _input(program, loop, results, source, iteration - 1)
        return results[iteration - 1][program.live.index(source - program.first_result)]
    stepped = dict(loop.inputs).get(number, (number,))
    assert isinstance(stepped, tuple)
    return loop.arrays[stepped[iteration % len(stepped)]]


def _stepped(first: Sequence[Any], stepped: Sequence[tuple[int, Steps]], iteration: int) -> tuple[Any, ...]:
    values = [*first]
    for number, steps in stepped:
        if isinstance(steps, tuple):
            values[number] = steps[iteration % len(steps)]
        else:
            values[number] += steps * iteration
    return tuple(values)


# ---- loops in submissions ----


class Submitting:
    """Runs submissions of one program on a device, and waits for each."""

    def __init__(self, runner: Runner, program: Program) -> None:
        unfinished: UnfinishedOrders[Order] = UnfinishedOrders()
        self.entry: ProgramEntry = entry_of(program)
        self.entry.loaded = runner.loaded(program)
        self._device: Device = runner.device
        self._memory = DeviceMemory(self._device, unfinished)
        self._reports: queue.SimpleQueue[Report] = queue.SimpleQueue()
        reports = JoinedReports(self._reports.put)
        self._completion = Completion(self._device, reports, lambda: True)
        self._allocation = Allocation(self._device, self._memory)
        self._one_ops = OneOps(self._device, runner.find_kernels)
        self._executor = Executor(
            self._device, self._memory, self._allocation, self._completion, reports, self._one_ops
        )
        self._unfused = UnfusedProgram(program)
        self._completion.start()
        self._rows: list[Row] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for row in self._rows:
            self._memory.release((*row.inputs, *row.outputs))
        self._completion.end()
        assert self._memory.count().live_bytes == 0

    def row(self, loop: Bindings) -> Row:
        """A row that none of whose iterations has run."""
        program = self.entry.program
        inputs = [self._value(number, array) for number, array in enumerate(loop.arrays)]
        scalars, starts = first_scalars(program), (_FIRST_START,) * program.starts
        row = Row(session(), self.entry, BASE, inputs, [], scalars, starts, 0)
        first = Segment(0, BASE, tuple(range(len(program.inputs))), scalars, starts, ())
        op_count = program.op_count
        entry = loop_of(first, loop.iterations, op_count, loop.kept, loop.inputs, loop.scalars, loop.starts)
        row.iterations = iterations_of(entry, row, 0)
        row.outputs = row.iterations.outputs
        self._rows.append(row)
        return row

    def run(self, spans: dict[Row, range]) -> None:
        """Runs iterations of rows by the plan."""
        self._executor.act(self._order(spans, self.entry.loaded))
        self._wait()

    def run_op_by_op(self, spans: dict[Row, range]) -> None:
        """Runs iterations of rows as a server does before it has the plan, in slices of an op or a few."""
        order = self._order(spans, None)
        device_time = DeviceTime(self._device)
        run = UnfusedRun(
            order, self._unfused, self._one_ops, self._allocation, self._memory, device_time, self._reports.put
        )
        while run.go_on(0) is Progress.GOES_ON:
            pass
        self._executor.complete_run(order.number, order.submission, run.failed, run.spare, device_time)
        self._wait()

    def _order(self, spans: dict[Row, range], loaded: LoadedPlan | None) -> Run:
        return Run(1, Submission(self.entry, loaded, spans, ((),) * len(spans), ()))

    def _wait(self) -> None:
        report = self._reports.get(timeout=_WITHIN_S)
        assert isinstance(report, Ran)
        assert not report.failed

    def kept(self, row: Row) -> list[list[bytes]]:
        """The bytes of what is kept of each live result, the last iteration first."""
        assert row.iterations is not None
        rings = zip(row.iterations.rings, row.iterations.kept, strict=True)
        return [[self._bytes(value) for value in ring[:kept]] for ring, kept in rings]

    def _value(self, number: int, array: Array) -> Value:
        spec = self.entry.program.inputs[min(number, len(self.entry.program.inputs) - 1)]
        value = Value(number, spec._replace(shape=array.shape), ValueState.READY)
        value.block = self._memory.allocate(array.nbytes)
        self._device.write(value.block, memoryview(array.tobytes()))
        return value

    def _bytes(self, value: Value) -> bytes:
        assert value.block is not None
        readback = self._device.read(value.block, value.size_bytes)
        self._device.fence().wait()
        return bytes(readback.data())


def wanted(program: Program, loop: Bindings, results: Sequence[Sequence[Array]]) -> list[list[bytes]]:
    """The bytes of what a loop keeps, of the results of all its iterations."""
    ages = [range(1, kept + 1) for kept in loop.kept]
    return [[results[-age][position].tobytes() for age in ages[position]] for position in range(len(program.live))]


# ---- drawn loops ----


def bindings(data: st.DataObject, name: str, iterations: int, seed: int) -> Bindings:
    program = PROGRAMS[name]
    arrays: list[Array] = random_inputs(program, seed)
    kept = data.draw(st.tuples(*[st.integers(0, min(iterations, 9)) for _ in program.live]).filter(any))
    inputs: tuple[tuple[int, Steps], ...] = ()
    scalars: tuple[tuple[int, Steps], ...] = ()
    if name == "moving":
        others = data.draw(st.integers(0, min(iterations, 4) - 1))
        inputs = ((1, (1, *range(3, 3 + others))),) if others else ()
        arrays += [random_inputs(program, seed + 1000 + number)[1] for number in range(others)]
        scalars = data.draw(st.sampled_from([(), ((0, -3),), ((0, (2, 5, -1)[:iterations]),)]))
    elif data.draw(st.booleans()):
        scalars = ((0, (0.5, 0.25, -0.5)[:iterations]),)
    listed = st.lists(st.integers(0, 11), min_size=1, max_size=min(iterations, 5)).map(lambda each: ((0, tuple(each)),))
    starts = data.draw(st.one_of(st.just(()), listed)) if program.starts else ()
    return Bindings(iterations, kept, arrays, inputs, scalars, starts)


def slices(data: st.DataObject, rows: Sequence[Row]) -> Iterator[dict[Row, range]]:
    """Divides the iterations of rows among submissions, each of which takes some of the rows for some iterations."""
    begun = dict.fromkeys(rows, 0)
    while left := [row for row in rows if row.iterations is not None and begun[row] < row.iterations.count]:
        chosen = data.draw(st.lists(st.sampled_from(left), min_size=1, max_size=len(left), unique_by=id))
        spans = {}
        for row in chosen:
            assert row.iterations is not None
            most = row.iterations.count - begun[row]
            taken = data.draw(st.one_of(st.just(most), st.integers(1, most)))
            spans[row] = range(begun[row], begun[row] + taken)
            begun[row] += taken
        yield spans


_DRAWN = settings(of_a_hundred(15), suppress_health_check=[*HealthCheck])


@pytest.mark.parametrize("name", PROGRAMS)
@_DRAWN
@given(st.data())
def test_loops_in_company_and_in_any_slices_give_the_bytes_of_their_iterations(
    runner: Runner, name: str, data: st.DataObject
) -> None:
    counts = data.draw(st.lists(st.sampled_from([1, 2, 3, 5, 16, 17, 40]), min_size=1, max_size=7))
    loops = [bindings(data, name, count, seed) for seed, count in enumerate(counts)]
    with Submitting(runner, PROGRAMS[name]) as submitting:
        rows = [submitting.row(loop) for loop in loops]
        for spans in slices(data, rows):
            submitting.run(spans)
        for row, loop in zip(rows, loops, strict=True):
            results = one_by_one(runner, PROGRAMS[name], loop)
            assert submitting.kept(row) == wanted(PROGRAMS[name], loop, results)


def kept_at_end(name: str, iterations: int, seed: int) -> Bindings:
    """A loop of which the last results are kept."""
    program = PROGRAMS[name]
    return Bindings(iterations, (1,) * len(program.live), random_inputs(program, seed), (), (), ())


def unrolled(program: Program, count: int) -> Program:
    """A program of the body's ops `count` times, of which the last results are live."""
    carried, first, op_count = dict(program.carried), program.first_result, program.op_count

    def operand(number: int, iteration: int) -> int:
        if number >= first:
            return number + iteration * op_count
        if number in carried and iteration > 0:
            return operand(carried[number], iteration - 1)
        return number

    ops = [
        ProgramOp(op, tuple(operand(number, iteration) for number in operands), attributes)
        for iteration in range(count)
        for op, operands, attributes in program.ops
    ]
    return build(program.inputs, program.scalars, ops, [index + (count - 1) * op_count for index in program.live])


@pytest.mark.parametrize("count", [1, 2, 3, 1000])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_loop_at_once_gives_what_it_gives_op_by_op(runner: Runner, name: str, count: int) -> None:
    program, loop = PROGRAMS[name], kept_at_end(name, count, seed=1)
    with Submitting(runner, program) as submitting:
        row = submitting.row(loop)
        submitting.run({row: range(count)})
        assert submitting.kept(row) == wanted(program, loop, one_by_one(runner, program, loop, op_by_op=True))


@pytest.mark.parametrize("is_op_by_op", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_loop_cut_at_any_iteration_gives_the_same_bytes(runner: Runner, name: str, is_op_by_op: bool) -> None:
    """Its first iterations may run op by op, because the plan is not there yet."""
    program, loop = PROGRAMS[name], kept_at_end(name, 20, seed=2)
    with Submitting(runner, program) as submitting:
        expected = wanted(program, loop, one_by_one(runner, program, loop))
        for cut in range(1, 20):
            row = submitting.row(loop)
            (submitting.run_op_by_op if is_op_by_op else submitting.run)({row: range(cut)})
            submitting.run({row: range(cut, 20)})
            assert submitting.kept(row) == expected


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_loop_gives_what_its_body_written_so_often_gives(runner: Runner, name: str, count: int) -> None:
    program, loop = PROGRAMS[name], kept_at_end(name, count, seed=4)
    with Submitting(runner, program) as submitting:
        row = submitting.row(loop)
        submitting.run({row: range(count)})
        starts = (_FIRST_START,) * program.starts * count
        written_out = Work(unrolled(program, count), tuple(loop.arrays), first_scalars(program), starts)
        assert submitting.kept(row) == [[result.tobytes()] for result in runner.run(written_out)]


@pytest.mark.parametrize("name", ["recurrent", "leaky", "gated", "pointwise"])
def test_persistent_kernels_and_captured_graphs_give_the_same_bytes(
    runner: Runner, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a device without persistent kernels the loop runs by its launches each time."""
    program, loop = PROGRAMS[name], kept_at_end(name, 300, seed=5)
    device: Any = runner.device
    with Submitting(runner, program) as submitting:
        expected = wanted(program, loop, one_by_one(runner, program, loop, op_by_op=True))

        def run() -> LaunchCounts:
            """Runs the loop, and returns how its plan has been launched so far."""
            row = submitting.row(loop)
            submitting.run({row: range(300)})
            assert submitting.kept(row) == expected
            assert submitting.entry.loaded is not None
            return submitting.entry.loaded.launch_counts

        before, after = run(), run()
        if device.persistent_kernels is None:
            return
        assert after.persistent_launches == before.persistent_launches + 1
        monkeypatch.setattr(device.persistent_kernels, "can_run", lambda *_: False)
        for _ in range(USES_BEFORE + 1):
            run()
            device._graphs._thread.submit(lambda: None).result(_WITHIN_S)  # behind a capture
        last = run()
        assert last.persistent_launches == after.persistent_launches
        assert last.captured > after.captured


@pytest.mark.parametrize("count", [1, 7, 64])
@pytest.mark.parametrize("name", PROGRAMS)
def test_rows_of_other_counts_give_in_one_launch_what_each_gives_alone(runner: Runner, name: str, count: int) -> None:
    program = PROGRAMS[name]
    loops = [kept_at_end(name, (300, 1, 2, 3, 64, 17)[seed % 6] + seed // 6, seed) for seed in range(count)]
    with Submitting(runner, program) as submitting:
        alone = []
        for loop in loops:
            row = submitting.row(loop)
            submitting.run({row: range(loop.iterations)})
            alone.append(submitting.kept(row))
        rows = [submitting.row(loop) for loop in loops]
        submitting.run({row: range(loop.iterations) for row, loop in zip(rows, loops, strict=True)})
        assert [submitting.kept(row) for row in rows] == alone
