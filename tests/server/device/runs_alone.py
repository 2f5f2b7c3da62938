"""Runs at tier 0 without a device thread: the test makes each slice, and fills and reads the blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fusewire_kernels.build import build_plan
from fusewire_kernels.devices.base import DeviceInfo, LoadedPlan
from fusewire_kernels.devices.null import NullDevice
from fusewire_kernels.unfused.one_op_call import OneOpCall
from fusewire_protos.frames import HANDLES_PER_RECORDER, Scalar, Segment, Steps
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs.program import Program
from fusewire_server.device.device_time import DeviceTime
from fusewire_server.device.memory.allocation import Allocation
from fusewire_server.device.memory.device_memory import DeviceMemory
from fusewire_server.device.orders import Order, Report, Run, Submission
from fusewire_server.device.unfused.one_ops import OneOps
from fusewire_server.device.unfused.program import UnfusedProgram
from fusewire_server.device.unfused.run import UnfusedRun
from fusewire_server.programs.program_table import ProgramEntry
from fusewire_server.scheduling.time_shares import Progress
from fusewire_server.scheduling.unfinished_orders import UnfinishedOrders
from fusewire_server.sessions.entries.loop import iterations_of
from fusewire_server.sessions.session import Row, Session, Value, ValueState
from tests.segments import loop_of
from tests.server.device_world import no_kernels
from tests.server.parts import entry_of, session, whole

Array = npt.NDArray[Any]

BASE = HANDLES_PER_RECORDER
AT_ONCE_NS, NEVER_NS = 0, 1 << 62  # the ends of a slice that has no time, and of one that has all of it
MOST_SLICES = 10_000


class KernelDevice(NullDevice):
    """Has a dialect, so that ops need kernels. Launching them computes nothing."""

    @property
    def info(self) -> DeviceInfo:
        return super().info._replace(dialect="cuda")


class RunsAlone:
    """A device's memory and ops, and the programs that run on it."""

    def __init__(self, device: NullDevice | None = None) -> None:
        self.device = device or NullDevice()
        self.memory = DeviceMemory(self.device, UnfinishedOrders[Order]())
        self.one_ops = OneOps(self.device, no_kernels)
        self.reports: list[Report] = []
        self._unfused: dict[ProgramEntry, UnfusedProgram] = {}

    @property
    def temporary_bytes(self) -> int:
        """Bytes of the temporaries of all runs."""
        return sum([each.size_bytes for each in self.memory._temporaries])

    # ---- rows ----

    def row(
        self,
        entry: ProgramEntry,
        inputs: Sequence[Array],
        scalars: Sequence[Scalar] = (),
        starts: Sequence[int] = (),
        owner: Session | None = None,
    ) -> Row:
        """A row whose inputs have their memory and whose results have none yet."""
        program = entry.program
        outputs = [
            Value(BASE + index, program.result_spec(index), ValueState.READY, op_index=index) for index in program.live
        ]
        return Row(
            owner or session(), entry, BASE, [*map(self.value, inputs)], outputs, tuple(scalars), tuple(starts), 0
        )

    def loop(
        self,
        entry: ProgramEntry,
        iterations: int,
        inputs: Sequence[Array],
        scalars: Sequence[Scalar] = (),
        starts: Sequence[int] = (),
        *,
        stepped_scalars: tuple[tuple[int, Steps], ...] = (),
        stepped_starts: tuple[tuple[int, Steps], ...] = (),
    ) -> Row:
        """A row that is a loop, of whose results the client keeps the last of each."""
        row = self.row(entry, inputs, scalars, starts)
        first = Segment(0, BASE, tuple(range(len(inputs))), row.scalars, row.starts, ())
        kept = (1,) * len(entry.program.live)
        stride = entry.program.op_count
        loop = loop_of(first, iterations, stride, kept, scalars=stepped_scalars, starts=stepped_starts)
        row.iterations = iterations_of(loop, row, 0)
        row.outputs = row.iterations.outputs
        return row

    def value(self, array: Array) -> Value:
        """A value with the bytes of an array."""
        data = np.array(array, order="C")
        value = Value(1, Spec(dtypes.from_numpy(data.dtype), data.shape), ValueState.READY)
        value.block = self.memory.allocate(value.size_bytes)
        self.device.write(value.block, memoryview(data.tobytes()))
        return value

    def array(self, value: Value) -> Array:
        """The array that a value holds."""
        assert value.block is not None
        data = self.device.read(value.block, value.size_bytes).data()
        return np.frombuffer(data, dtypes.to_numpy(value.spec.dtype)).reshape(value.spec.shape)

    def forget(self, *rows: Row) -> None:
        """Gives back the memory of the inputs and the results of rows."""
        for row in rows:
            self.memory.release((*row.inputs, *row.outputs))

    def assert_nothing_is_held(self) -> None:
        assert (self.memory.count().live_bytes, self.device.live_bytes) == (0, 0)

    # ---- runs ----

    def begin(self, *rows: Row, spans: Mapping[Row, range] | None = None) -> UnfusedRun:
        """A run of rows of one program. Rows run whole unless `spans` says otherwise."""
        entry = rows[0].entry
        submission = Submission(entry, None, spans or whole(*rows), ((),) * len(rows), ())
        unfused = self._unfused.setdefault(entry, UnfusedProgram(entry.program))
        return UnfusedRun(
            Run(1, submission),
            unfused,
            self.one_ops,
            Allocation(self.device, self.memory),
            self.memory,
            DeviceTime(self.device),
            self.reports.append,
        )

    def run(self, *rows: Row, spans: Mapping[Row, range] | None = None) -> UnfusedRun:
        """A run that has ended, in one slice."""
        run = self.begin(*rows, spans=spans)
        assert run.go_on(NEVER_NS) is Progress.ENDED
        return run

    def results(
        self,
        program: Program,
        inputs: Sequence[Array],
        scalars: Sequence[Scalar] = (),
        starts: Sequence[int] = (),
        *,
        until_ns: int = NEVER_NS,
    ) -> list[Array]:
        """The live results of a program, run in slices that end at `until_ns`. Nothing stays allocated."""
        row = self.row(entry_of(program), inputs, scalars, starts)
        run = self.begin(row)
        end(run, until_ns)
        assert not run.failed, run.failed
        arrays = [self.array(value).copy() for value in row.outputs]
        self.forget(row)
        return arrays

    def load(self, call: OneOpCall) -> LoadedPlan:
        """Brings the kernels of a call."""
        loaded = self.device.load(build_plan(call.program(), "cuda", most_rows=1), ())
        self.one_ops.add(call, loaded)
        return loaded


def assert_same_arrays(found: Sequence[Array], expected: Sequence[Array]) -> None:
    assert [each.tobytes() for each in found] == [each.tobytes() for each in expected]


def end(run: UnfusedRun, until_ns: int = NEVER_NS) -> None:
    """Makes slices until the run has ended. Each goes on, so the run waits for nothing."""
    for _ in range(MOST_SLICES):
        progress = run.go_on(until_ns)
        if progress is Progress.ENDED:
            return
        assert progress is Progress.GOES_ON, progress
    raise AssertionError("the run does not end")
