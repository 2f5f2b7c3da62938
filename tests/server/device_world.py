"""A device thread for tests, with runs at tier 0 that go on until the test lets them end."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from fusewire_kernels.build import build_plan
from fusewire_kernels.devices.null import NullDevice
from fusewire_protos.credit import NO_WORK
from fusewire_protos.ops import catalogue, dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs.program import ProgramOp, build
from fusewire_server.device.device_thread import DeviceThread
from fusewire_server.device.memory.device_memory import Temporaries
from fusewire_server.device.orders import Order, Ran, Report, Run, RunIsLong, Submission, Write
from fusewire_server.device.unfused.iteration import Iteration
from fusewire_server.device.unfused.program import UnfusedProgram
from fusewire_server.programs.program_table import ProgramEntry
from fusewire_server.sessions.session import Row, Session, Value, ValueState
from tests.patience import HANGS_S
from tests.server.parts import SIZE_BYTES, VECTOR, chain, entry_of, op, session, whole

DEADLINE_S = HANGS_S
_AT_ONCE_NS = 0  # the end of a slice that has no time
SLOW, OTHER_SLOW, FAST, OTHER_FAST = 1, 2, 3, 4  # numbers of submissions


class UntimedQueue(queue.SimpleQueue[Sequence[Order] | None]):
    """Refuses to wait with a timeout: up to CPython 3.12, if the waiting thread is interrupted, that may never end."""

    def get(self, block: bool = True, timeout: float | None = None) -> Sequence[Order] | None:  # noqa: FBT002
        assert timeout is None, "a wait with a timeout"
        return super().get(block)


@dataclass
class World:
    """A device thread whose rows at tier 0 stand behind their first op until `gate`, or that of their session, is open.

    They do so once `iteration` replaces the class of iterations.
    """

    device: NullDevice
    shares_device: bool = False
    gate: threading.Event = field(default_factory=threading.Event)
    gates: dict[Session, threading.Event] = field(default_factory=dict)
    begun: threading.Event = field(default_factory=threading.Event)
    rows_begun: list[Row] = field(default_factory=list)
    reports: queue.SimpleQueue[Report] = field(default_factory=queue.SimpleQueue)

    def __post_init__(self) -> None:
        self.thread = DeviceThread(self.device, no_kernels, self.reports.put, shares_device=self.shares_device)
        self.thread._orders = UntimedQueue()
        self.tier0 = entry_of(chain(["negative", "negative"]))
        self.tier1 = entry_of(chain())
        self.tier1.loaded = self.device.load(build_plan(self.tier1.program, "c"), ())

    def iteration(
        self, temporaries: Temporaries, unfused: UnfusedProgram, row: Row, skipped: frozenset[int]
    ) -> Iteration:
        self.rows_begun.append(row)
        return _GatedIteration(self, temporaries, unfused, row, skipped)

    def run(self, number: int, *sessions: Session, released: tuple[Value, ...] = ()) -> list[Row]:
        """Orders a run for one row of each session, at tier 0 if the number is that of a slow one."""
        entry = self.tier0 if number in (SLOW, OTHER_SLOW) else self.tier1
        return self._run(number, entry, sessions, released)

    def run_at_tier_0(self, number: int, *sessions: Session) -> list[Row]:
        return self._run(number, self.tier0, sessions, ())

    def run_without_inputs(self, number: int, size_bytes: int, one: Session) -> Row:
        """A run at tier 0 of one row, whose result takes so much, and whose only temporary takes as much."""
        made = ProgramOp(catalogue.BY_NAME["eye"], (), (1, size_bytes // 4, 0, dtypes.float32.code))
        entry = entry_of(build([], [], [made, op("negative", 0)], (1,)))
        spec = entry.program.result_spec(1)
        row = Row(one, entry, 1, [], [Value(2, spec, ValueState.READY, op_index=1)], (), (), 0)
        self.thread.order(Run(number, Submission(entry, None, whole(row), ((),), ())))
        return row

    def begin_run(self, number: int, size_bytes: int) -> Row:
        """Such a run, which holds its temporary when this returns; it ends when the gate of its session is opened."""
        one = session(str(number))
        self.gates[one] = threading.Event()
        self.begun.clear()
        row = self.run_without_inputs(number, size_bytes, one)
        assert self.begun.wait(DEADLINE_S)
        return row

    def _run(
        self,
        number: int,
        entry: ProgramEntry,
        sessions: Sequence[Session],
        released: tuple[Value, ...],
    ) -> list[Row]:
        rows = [Row(one, entry, 1, [self.value()], [_result()], (), (), 0) for one in sessions]
        submission = Submission(entry, entry.loaded, whole(*rows), ((),) * len(rows), released)
        self.thread.order(Run(number, submission))
        return rows

    def value(self) -> Value:
        value = Value(1, VECTOR, ValueState.READY)
        value.block = self.device.allocate(SIZE_BYTES)
        return value

    def next_report(self) -> Report:
        """But for those that say that a run lasts, as any may on a busy machine."""
        while isinstance(report := self.reports.get(timeout=DEADLINE_S), RunIsLong):
            pass
        return report

    def completed(self, count: int) -> list[int]:
        """The numbers of the next submissions to be completed, all of whose rows succeed."""
        reports = [self.next_report() for _ in range(count)]
        assert all(isinstance(report, Ran) and not report.failed for report in reports), reports
        return [report.number for report in reports if isinstance(report, Ran)]


class _GatedIteration(Iteration):
    """Runs its first step, and then waits for its gate with what it holds."""

    def __init__(
        self, world: World, temporaries: Temporaries, unfused: UnfusedProgram, row: Row, skipped: frozenset[int]
    ) -> None:
        super().__init__(temporaries, unfused, row, skipped)
        self._begun = world.begun
        self._gate = world.gates.get(row.session, world.gate)

    def go_on(self, until_ns: int) -> bool:
        if self.op_index == 0:
            super().go_on(_AT_ONCE_NS)
            self._begun.set()
        return self._gate.is_set() and super().go_on(until_ns)


def end_slices_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes each op at tier 0, and each piece of a large value, take a turn of its own."""
    for module in ("scheduling.time_shares", "device.device_thread"):
        monkeypatch.setattr(f"fusewire_server.{module}.ORDER_SLICE_NS", 0)


def no_kernels(_: object) -> None:
    """Finds no compiled kernels."""


def _result() -> Value:
    return Value(2, VECTOR, ValueState.READY, op_index=1)


def write(size_bytes: int, owner: Session) -> Write:
    value = Value(1, Spec(dtypes.uint8, (size_bytes,)), ValueState.READY)
    return Write(owner, value, bytes(size_bytes), NO_WORK)
