"""The thread that talks to the device: it takes orders in turn, acts, and reports. It decides nothing.

Orders come from the loop through one queue, so what the loop orders first happens first, and a block that is
released may be handed out to whatever is ordered later. A run at tier 0 goes on in slices: orders of other sessions
that come meanwhile may overtake it (see `slices`), and time is shared. The device thread never waits for a fetch: what
the device has not reached yet goes to the completion thread, which waits on fences in order.
"""

from __future__ import annotations

import logging
import math
import queue
import threading
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from fusewire_kernels.devices.base import Block, Device, Fence, LoadedPlan, Readback, Staged
from fusewire_kernels.interpreter import Steps
from fusewire_kernels.plan import Plan
from fusewire_protos.errors import FusewireError, OutOfMemory
from fusewire_protos.frames import INLINE_BYTES
from fusewire_protos.program import Program
from fusewire_server.intermediates import intermediate_bytes, most_intermediate_bytes
from fusewire_server.programs import ProgramEntry
from fusewire_server.session import Session
from fusewire_server.slices import Line
from fusewire_server.tier0 import prepare, repertoire_of, run_op_by_op
from fusewire_server.work import Amount, Fetching, Row, Submission, Value, ValueState

log = logging.getLogger("fusewire.device")

SLICE_NS = 300_000  # an unfinished run and those who may overtake it take turns of this length
# Between slices, so that a thread which waits for the interpreter lock gets it: while ops run, every launch lets go of
# it, but too briefly for the other to wake up in time.
PAUSE_S = 0.00005


class Run(NamedTuple):
    """Run the rows of a submission."""

    number: int
    submission: Submission


class Write(NamedTuple):
    """Fill a value with bytes from the host; `credit` comes back to the session when that is done."""

    session: Session
    value: Value
    data: bytes | Staged
    credit: Amount


class Read(NamedTuple):
    """Bring a value to the host."""

    fetching: Fetching


class Release(NamedTuple):
    """Give back the memory of values that died, all of them values of these sessions."""

    sessions: frozenset[Session]
    values: tuple[Value, ...]


class Load(NamedTuple):
    """Load a plan; `key` is the program entry, or the one-op call, that it serves."""

    key: object
    plan: Plan
    binaries: tuple[str, ...]


Order = Run | Write | Read | Release | Load


class FailedRow(NamedTuple):
    """A row that came to nothing; `case` is the name of its case of the error table."""

    row: Row
    case: str
    text: str


class Ran(NamedTuple):
    """A submission has been completed, but for the rows that failed."""

    number: int
    failed: tuple[FailedRow, ...]
    device_ns: int


class Wrote(NamedTuple):
    """A value has been written, or could not be for want of memory (`refusal` says so)."""

    write: Write
    refusal: str | None


class Missing(NamedTuple):
    """A fetched value is not there: its producer found no room."""

    fetching: Fetching


class Brought(NamedTuple):
    """A fetched value is on the host."""

    fetching: Fetching
    data: memoryview


class Loaded(NamedTuple):
    key: object
    loaded: LoadedPlan


class Unloadable(NamedTuple):
    """A plan that the device does not take."""

    key: object
    text: str


class Broken(NamedTuple):
    """The device is beyond use; the process must end."""

    error: BaseException


Report = Ran | Wrote | Missing | Brought | Loaded | Unloadable | Broken


class MemoryCount(NamedTuple):
    """Bytes of buffers at one moment and at their most."""

    live_bytes: int
    peak_bytes: int
    pool_bytes: int
    donations: int
    donated_bytes: int


class _Prepared(NamedTuple):
    """A program made ready for tier 0."""

    steps: Steps
    at_most_bytes: int  # of its intermediate values


@dataclass(eq=False, slots=True)
class _Unfinished:
    """A run at tier 0 that goes on in slices. `used_ns` is the time that they took; `failed` and `spare` grow."""

    run: Run
    failed: list[FailedRow]
    spare: list[Block]
    steps: Generator[None, None, None]
    used_ns: int = 0


def sessions_of(order: Order) -> frozenset[Session]:
    """The sessions whose values an order reads, writes, frees or overwrites."""
    match order:
        case Run(_, submission):
            return frozenset([row.session for row in submission.rows])
        case Write(session):
            return frozenset([session])
        case Read(fetching):
            return frozenset([fetching.session])
        case Release(sessions):
            return sessions
        case Load():
            return frozenset()


def _largest_stand_in_bytes(submission: Submission) -> int:
    inputs = [value for row in submission.rows for value in row.inputs]
    return max(value.spec.size_bytes for value in inputs if value.state is ValueState.STAND_IN)


def _goes_in_slices(order: Order) -> bool:
    return isinstance(order, Run) and order.submission.loaded is None


class DeviceThread:
    """Runs orders on a device. `report` is called from the device and the completion thread."""

    def __init__(self, device: Device, report: Callable[[Report], None]) -> None:
        self._device = device
        self._report = report
        self._orders: queue.SimpleQueue[Order | None] = queue.SimpleQueue()
        self._fenced: queue.SimpleQueue[tuple[Fence, Callable[[], Report]] | None] = queue.SimpleQueue()
        self._tables: WeakKeyDictionary[ProgramEntry, npt.NDArray[np.int64]] = WeakKeyDictionary()
        self._repertoire = repertoire_of(device)  # device thread only
        self._prepared: WeakKeyDictionary[ProgramEntry, _Prepared] = WeakKeyDictionary()
        self._line: Line[Order] = Line()  # device thread only, as the next two
        self._unfinished: _Unfinished | None = None
        self._slice_due_ns = 0  # when the unfinished run goes on whoever waits
        self._reserved_bytes = 0  # for what the unfinished run keeps in no block; device thread only
        self._live_bytes = 0  # device thread writes, any thread may read: one int each
        self._peak_bytes = 0
        self._donations = 0
        self._donated_bytes = 0
        self.busy_ns = 0
        self._given = 0  # orders; the loop thread writes
        self._done = 0  # orders; the device thread writes, last of all it does for one
        self._is_host = device.info.is_host
        self._worker = threading.Thread(target=self._work, name="fusewire-device", daemon=True)
        self._completer = threading.Thread(target=self._complete, name="fusewire-completion", daemon=True)

    @property
    def is_running(self) -> bool:
        return self._worker.is_alive()

    def start(self) -> None:
        self._completer.start()
        self._worker.start()

    def stop(self, timeout_s: float) -> None:
        """Ends both threads after the orders given so far; waits at most `timeout_s`."""
        self._orders.put(None)
        self._worker.join(timeout_s)

    def order(self, order: Order) -> None:
        """Queues an order; loop thread, never blocks."""
        self._given += 1
        self._orders.put(order)

    def read_at_once(self, value: Value) -> memoryview | None:
        """A small value without the hand-over to the device thread and back; None if that cannot be done.

        Loop thread. While the device thread has done all it was told, nobody else uses the device: orders come from
        the loop alone. Only where reading is a copy by the processor is it as quick as queueing the order.
        """
        is_idle = self._done == self._given
        if not (is_idle and self._is_host) or value.block is None or value.spec.size_bytes > INLINE_BYTES:
            return None
        return self._device.read(value.block, value.spec.size_bytes).data()

    def memory(self) -> MemoryCount:
        pool_bytes = self._device.pool_bytes()
        return MemoryCount(self._live_bytes, self._peak_bytes, pool_bytes, self._donations, self._donated_bytes)

    def _work(self) -> None:
        try:
            while (order := self._next_order()) is not None:
                self._consider(order)
            self._finish_unfinished()
        except Exception as error:  # noqa: BLE001 - whatever it is, the device can no longer be trusted
            self._report(Broken(error))
        self._fenced.put(None)
        self._completer.join()  # it still waits on fences of the device
        self._device.close()

    def _next_order(self) -> Order | None:
        """The next order of the loop. Until it comes, and when its turn has come, the unfinished run goes on."""
        while self._unfinished is not None:
            if time.perf_counter_ns() >= self._slice_due_ns:
                self._go_on(self._unfinished, SLICE_NS)
            try:
                return self._orders.get(timeout=PAUSE_S)
            except queue.Empty:
                self._slice_due_ns = 0
        return self._orders.get()

    def _consider(self, order: Order) -> None:
        """Acts on an order, now or when the unfinished run has ended."""
        if self._line.is_open or self._line.admit(order, sessions_of(order), goes_in_slices=_goes_in_slices(order)):
            self._act(order)

    def _act(self, order: Order) -> None:
        began_ns = time.perf_counter_ns()
        if isinstance(order, Run) and _goes_in_slices(order):
            self._begin(order)
        else:
            self._do(order)
            self._done += 1
        self.busy_ns += time.perf_counter_ns() - began_ns

    def _do(self, order: Order) -> None:
        match order:
            case Run(number, submission):
                self._run(number, submission)
            case Write():
                self._write(order)
            case Read():
                self._read(order.fetching)
            case Release():
                self._release(order.values)
            case Load():
                self._load(order)

    # ---- running at tier 0, in slices ----

    def _begin(self, run: Run) -> None:
        rows, failed, spare = self._allocate_rows(run.submission)
        self._line.begin(sessions_of(run))
        self._unfinished = _Unfinished(run, failed, spare, self._run_op_by_op(rows, failed))
        self._slice_due_ns = 0

    def _go_on(self, unfinished: _Unfinished, most_ns: float) -> None:
        """Runs ops for as long as that, or to the end."""
        began_ns = time.perf_counter_ns()
        is_over = self._run_slice(unfinished, began_ns + most_ns)
        now_ns = time.perf_counter_ns()
        unfinished.used_ns += now_ns - began_ns
        self.busy_ns += now_ns - began_ns
        self._slice_due_ns = now_ns + SLICE_NS
        if is_over:
            self._end(unfinished)

    def _run_slice(self, unfinished: _Unfinished, until_ns: float) -> bool:
        """Whether the run has come to its end."""
        with np.errstate(all="ignore"):
            for _ in unfinished.steps:
                if time.perf_counter_ns() >= until_ns:
                    return False
        return True

    def _end(self, unfinished: _Unfinished) -> None:
        self._unfinished = None
        number, submission = unfinished.run
        self._complete_run(
            number, submission, unfinished.failed, unfinished.spare, time.perf_counter_ns() - unfinished.used_ns
        )
        self._done += 1
        for order in self._line.end():
            self._consider(order)

    def _finish_unfinished(self) -> None:
        """Runs what is unfinished, and all that was held up, to the end."""
        while self._unfinished is not None:
            self._go_on(self._unfinished, math.inf)

    def _run_op_by_op(self, rows: Sequence[Row], failed: list[FailedRow]) -> Generator[None, None, None]:
        for row in rows:
            failure = yield from self._run_row(row)
            if failure is not None:
                failed.append(failure)

    def _run_row(self, row: Row) -> Generator[None, None, FailedRow | None]:
        """What the array library raises, of whatever kind, is the row's own matter: others must not fail with it."""
        try:
            steps = yield from self._prepare(row.entry)
            yield from run_op_by_op(self._device, steps, row)
        except MemoryError as error:
            failure = FailedRow(row, "out_of_memory", str(error) or "the device has no room for intermediate values")
        except Exception as error:
            log.exception("a row failed at tier 0")
            failure = FailedRow(row, "server_fault", f"running op by op failed: {type(error).__name__}")
        else:
            return None
        finally:
            self._reserved_bytes = 0
        self._release(tuple(row.outputs))
        return failure

    def _prepare(self, entry: ProgramEntry) -> Generator[None, None, Steps]:
        """Reserves what a run takes first, so that those who overtake it meanwhile leave it room."""
        prepared = self._prepared.get(entry)
        if prepared is not None:
            self._reserve(entry.program, prepared.at_most_bytes)
            return prepared.steps
        at_most_bytes = most_intermediate_bytes(entry.program)
        self._reserve(entry.program, at_most_bytes)
        steps = yield from prepare(self._device, self._repertoire, entry)
        self._prepared[entry] = _Prepared(steps, at_most_bytes)
        return steps

    def _reserve(self, program: Program, at_most_bytes: int) -> None:
        """For the values of one run. They are counted closely only where that decides: it takes as long as many ops."""
        size_bytes = at_most_bytes if self._fits(at_most_bytes) else intermediate_bytes(program)
        if not self._fits(size_bytes):
            raise OutOfMemory(
                f"op by op the intermediate values take {size_bytes} bytes beside the {self._live_bytes} bytes in use"
            )
        self._reserved_bytes = size_bytes

    def _fits(self, size_bytes: int) -> bool:
        return self._live_bytes + self._reserved_bytes + size_bytes <= self._device.info.memory_bytes

    # ---- running a submission: the hot path ----

    def _run(self, number: int, submission: Submission) -> None:
        began_ns = time.perf_counter_ns()
        rows, failed, spare = self._allocate_rows(submission)
        if rows:
            assert submission.loaded is not None, "what runs op by op goes in slices"
            self._launch(submission.entry, submission.loaded, rows)
        self._complete_run(number, submission, failed, spare, began_ns)

    def _complete_run(
        self, number: int, submission: Submission, failed: list[FailedRow], spare: list[Block], began_ns: int
    ) -> None:
        for block in spare:
            self._give_back(block)
        self._release(submission.released)
        self._when_reached(lambda: Ran(number, tuple(failed), time.perf_counter_ns() - began_ns))

    def _launch(self, entry: ProgramEntry, loaded: LoadedPlan, rows: list[Row]) -> None:
        layout = entry.layout
        assert layout is not None, "a plan is loaded with its layout"
        arena_bytes = loaded.plan.arena_bytes
        table = self._table(entry, len(rows), len(loaded.plan.columns))
        for position, row in enumerate(rows):
            layout.fill(
                table[position],
                self._device.arena_address(arena_bytes, position),
                [value.block.address for value in row.inputs],  # type: ignore[union-attr]  # allocated above
                [value.block.address for value in row.outputs],  # type: ignore[union-attr]
                row.scalars,
                row.starts,
            )
        self._device.launch(loaded, table)

    def _table(self, entry: ProgramEntry, rows: int, columns: int) -> npt.NDArray[np.int64]:
        table = self._tables.get(entry)
        if table is None or len(table) < rows:
            table = self._tables[entry] = np.zeros((max(rows, 8), columns), np.int64)
        return table[:rows]

    def _allocate_rows(self, submission: Submission) -> tuple[list[Row], list[FailedRow], list[Block]]:
        """All memory of a submission, before its first launch: rows to run, rows without room, blocks to give back."""
        rows: list[Row] = []
        failed: list[FailedRow] = []
        spare: list[Block] = []  # at most one: the zeros in place of inputs that failed
        for row, donated in zip(submission.rows, submission.donated, strict=True):
            try:
                self._allocate_row(row, donated, spare, submission)
                rows.append(row)
            except OutOfMemory as error:
                failed.append(FailedRow(row, "out_of_memory", str(error)))
        return rows, failed, spare

    def _allocate_row(
        self, row: Row, donated: tuple[tuple[int, int], ...], spare: list[Block], submission: Submission
    ) -> None:
        donor_of = {position: row.inputs[number] for number, position in donated}
        fresh: list[Value] = []
        try:
            for position, value in enumerate(row.outputs):
                if position not in donor_of:
                    value.block = self._allocate(value.spec.size_bytes)
                    fresh.append(value)
            for value in row.inputs:
                if value.block is None:
                    value.block = self._stand_in(value, spare, submission)
        except OutOfMemory:
            self._release((*fresh, *donor_of.values()))
            raise
        for position, donor in donor_of.items():
            self._hand_on(donor, row.outputs[position])

    def _stand_in(self, value: Value, spare: list[Block], submission: Submission) -> Block:
        """Zeros in place of an input that failed: only results that nobody will see depend on it.

        All that stand in during a submission share one block. An input that is no stand-in has no memory if its
        producer, or its bytes, found no room.
        """
        if value.state is not ValueState.STAND_IN:
            raise OutOfMemory("the device had no room for an input")
        if not spare:
            spare.append(self._zeros(_largest_stand_in_bytes(submission)))
        return spare[0]

    def _zeros(self, size_bytes: int) -> Block:
        try:
            zeros = np.zeros(size_bytes, np.uint8)
        except MemoryError:
            raise OutOfMemory(f"the system has no room for {size_bytes} bytes") from None
        block = self._allocate(size_bytes)
        self._device.write(block, zeros.data)
        return block

    def _hand_on(self, donor: Value, heir: Value) -> None:
        heir.block = donor.block
        self._donations += 1
        self._donated_bytes += donor.spec.size_bytes

    # ---- memory and transfers ----

    def _allocate(self, size_bytes: int) -> Block:
        return self._counted(self._find_room(size_bytes, lambda: self._device.allocate(size_bytes)))

    def _counted(self, block: Block) -> Block:
        self._live_bytes += block.size_bytes
        self._peak_bytes = max(self._peak_bytes, self._live_bytes)
        return block

    def _find_room(self, size_bytes: int, take: Callable[[], Block]) -> Block:
        """Raises OutOfMemory, but not because of what is held up with the unfinished run, or reserved for it."""
        if self._unfinished is not None and not self._fits(size_bytes):
            self._finish_unfinished()
        try:
            return take()
        except OutOfMemory:
            if self._unfinished is None:
                raise
        self._finish_unfinished()
        return take()

    def _give_back(self, block: Block) -> None:
        self._live_bytes -= block.size_bytes
        self._device.release(block)

    def _drop(self, value: Value) -> None:
        block, value.block = value.block, None
        if block is not None:
            self._give_back(block)

    def _release(self, values: tuple[Value, ...]) -> None:
        for value in values:
            self._drop(value)

    def _write(self, write: Write) -> None:
        try:
            write.value.block = self._filled(write.data)
        except OutOfMemory as error:
            self._report(Wrote(write, str(error)))
            return
        self._report(Wrote(write, None))

    def _filled(self, data: bytes | Staged) -> Block:
        if isinstance(data, Staged):
            return self._counted(self._find_room(len(data.memory), lambda: self._device.put(data)))
        block = self._allocate(len(data))
        self._device.write(block, memoryview(data))
        return block

    def _load(self, load: Load) -> None:
        try:
            loaded = self._device.load(load.plan, load.binaries)
        except (FusewireError, OSError) as error:
            self._report(Unloadable(load.key, str(error)))
            return
        self._report(Loaded(load.key, loaded))

    def _read(self, fetching: Fetching) -> None:
        value = fetching.value
        if value.block is None:
            self._report(Missing(fetching))
            return
        readback: Readback = self._device.read(value.block, value.spec.size_bytes)
        self._when_reached(lambda: Brought(fetching, readback.data()))

    # ---- completion ----

    def _when_reached(self, report: Callable[[], Report]) -> None:
        fence = self._device.fence()
        if fence.is_reached() and self._fenced.empty():
            self._report(report())
        else:
            self._fenced.put((fence, report))

    def _complete(self) -> None:
        while (fenced := self._fenced.get()) is not None:
            fence, report = fenced
            try:
                fence.wait()
                reached = report()
            except Exception as error:  # noqa: BLE001 - whatever it is, the device can no longer be trusted
                self._report(Broken(error))
                return
            self._report(reached)
