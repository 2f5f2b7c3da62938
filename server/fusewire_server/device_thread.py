"""The thread that talks to the device: it takes orders in turn, acts, and reports. It decides nothing.

Orders come from the loop through one queue, so what the loop orders first happens first, and a block that is
released may be handed out to whatever is ordered later. A run at tier 0 goes on in slices: orders of other sessions
that come meanwhile may overtake it (see `slices`), and several such runs take turns. The device thread never waits for
a fetch: what the device has not reached yet goes to the completion thread, which waits on fences in order.
"""

from __future__ import annotations

import logging
import math
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from fusewire_kernels.devices.base import Block, Device, Fence, LoadedPlan, Readback, Staged
from fusewire_kernels.interpreter import Steps
from fusewire_protos.errors import FusewireError, OutOfMemory
from fusewire_protos.frames import INLINE_BYTES
from fusewire_server.intermediates import intermediate_bytes, most_intermediate_bytes
from fusewire_server.large_read import LargeRead
from fusewire_server.orders import (
    Broken,
    Brought,
    FailedRow,
    Lasts,
    Load,
    Loaded,
    Missing,
    Order,
    Ran,
    Read,
    Release,
    Report,
    Run,
    Unloadable,
    Write,
    Wrote,
    goes_in_slices,
    sessions_of,
    values_needed,
)
from fusewire_server.programs import ProgramEntry
from fusewire_server.session import SessionState
from fusewire_server.slices import Line, giving_way
from fusewire_server.tier0 import prepare, repertoire_of, run_op_by_op
from fusewire_server.turns import Turns
from fusewire_server.work import Fetching, Row, Submission, Value, ValueState

log = logging.getLogger("fusewire.device")

SLICE_NS = 300_000  # unfinished runs, and those who may overtake them, take turns of this length
LASTING_NS = 5_000_000  # a run that has used so much, or waits, is reported: others need not wait for its end
MOST_RETREATS = 3  # how often a run gives way to others before it is refused
# Between slices, so that a thread which waits for the interpreter lock gets it: while ops run, every launch lets go of
# it, but too briefly for the other to wake up in time.
PAUSE_S = 0.00005


class MemoryCount(NamedTuple):
    """Bytes of buffers at one moment and at their most."""

    live_bytes: int
    peak_bytes: int
    pool_bytes: int
    donations: int
    donated_bytes: int


@dataclass(eq=False, slots=True)
class _Known:
    """What is known of a program at tier 0: how much its intermediate values take, and its steps once it is ready."""

    at_most_bytes: int
    exact_bytes: int | None = None
    steps: Steps | None = None


class _Progress(Enum):
    """What a slice came to."""

    ENDED = "ended"
    GOES_ON = "goes on"
    WAITS = "waits"  # for others, or for the device


@dataclass(eq=False, slots=True)
class _Unfinished:
    """A run at tier 0, which goes on in slices. `used_ns` is the time that they took."""

    order: Run
    rows: deque[Row]  # those that have not ended; the first is under way while there are `steps`
    failed: list[FailedRow]
    spare: list[Block]
    steps: Generator[None, None, None] | None = None
    reserved_bytes: int = 0  # for what the row under way keeps in no block
    retreats: int = 0  # how often it has given that back to others, to begin the row anew
    used_ns: int = 0
    is_reported: bool = False  # as one that lasts

    @property
    def entry(self) -> ProgramEntry:
        return self.order.submission.entry

    @property
    def tenant(self) -> str:
        """Whose turn it takes."""
        return (self.rows or self.order.submission.rows)[0].session.tenant


@dataclass(eq=False, slots=True)
class _Reading:
    """A read of a large value, which goes on in slices. `used_ns` is the time that they took."""

    order: Read
    copy: LargeRead | None  # None if there is nothing to be had
    used_ns: int = 0

    @property
    def tenant(self) -> str:
        return self.order.fetching.session.tenant

    @property
    def is_unwanted(self) -> bool:
        fetching = self.order.fetching
        return fetching.is_abandoned or fetching.session.state is SessionState.CLOSED


def _largest_stand_in_bytes(submission: Submission) -> int:
    inputs = [value for row in submission.rows for value in row.inputs]
    return max(value.spec.size_bytes for value in inputs if value.state is ValueState.STAND_IN)


class DeviceThread:
    """Runs orders on a device. `report` is called from the device and the completion thread."""

    def __init__(self, device: Device, report: Callable[[Report], None]) -> None:
        self._device = device
        self._report = report
        self._orders: queue.SimpleQueue[Order | None] = queue.SimpleQueue()
        self._fenced: queue.SimpleQueue[tuple[Fence, Callable[[], Report]] | None] = queue.SimpleQueue()
        self._tables: WeakKeyDictionary[ProgramEntry, npt.NDArray[np.int64]] = WeakKeyDictionary()
        self._repertoire = repertoire_of(device)  # device thread only
        self._known: WeakKeyDictionary[ProgramEntry, _Known] = WeakKeyDictionary()
        self._line: Line[Order] = Line()  # device thread only, as the next four
        self._unfinished: list[_Unfinished] = []
        self._turns: Turns[_Unfinished | _Reading] = Turns()  # each of them and all that is being read, by tenant
        self._slice_due_ns = 0  # when one of these goes on whoever waits
        self._reserved_bytes = 0  # by all of them
        self._live_bytes = 0  # device thread writes, any thread may read: one int each
        self._peak_bytes = 0
        self._donations = 0
        self._donated_bytes = 0
        self.busy_ns = 0
        self._given = 0  # orders; the loop thread writes
        self._done = 0  # orders; the device thread writes, last of all it does for one
        self._handed_over = 0  # reports, to the completion thread; the device thread writes
        self._completed = 0  # of these, that have been made; the completion thread writes
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
        """The next order of the loop. Until it comes, and when their turn has come, unfinished orders go on."""
        while not self._line.is_open:
            if time.perf_counter_ns() >= self._slice_due_ns:
                self._take_turn(SLICE_NS)
            try:
                return self._orders.get(timeout=PAUSE_S)
            except queue.Empty:
                self._slice_due_ns = 0
        return self._orders.get()

    def _consider(self, order: Order) -> None:
        """Acts on an order, now or when the unfinished ones that it must wait for have ended."""
        in_slices = goes_in_slices(order)
        is_alone = self._line.is_open and not in_slices
        if is_alone or self._line.admit(order, sessions_of(order), goes_in_slices=in_slices):
            self._act(order)

    def _act(self, order: Order) -> None:
        began_ns = time.perf_counter_ns()
        if goes_in_slices(order):
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

    # ---- what goes on in slices ----

    def _begin(self, order: Order) -> None:
        if isinstance(order, Run):
            self._begin_run(order)
        elif isinstance(order, Read):
            self._begin_reading(order)
        self._slice_due_ns = 0

    def _take_turn(self, most_ns: float) -> None:
        """Whoever's turn it is goes on for as long as that, or to the end."""
        one = self._turns.take()
        assert one is not None, "each that is unfinished awaits its turn"
        began_ns = time.perf_counter_ns()
        if isinstance(one, _Unfinished):
            progress = self._run_slice(one, began_ns + most_ns)
        else:
            progress = self._read_slice(one, began_ns + most_ns)
        now_ns = time.perf_counter_ns()
        one.used_ns += now_ns - began_ns
        self.busy_ns += now_ns - began_ns
        self._slice_due_ns = 0 if progress is _Progress.WAITS else now_ns + SLICE_NS
        if progress is _Progress.ENDED:
            self._end(one)
        else:
            self._turns.add(one.tenant, one)

    def _end(self, one: _Unfinished | _Reading) -> None:
        if isinstance(one, _Unfinished):
            self._end_run(one)
        else:
            self._end_reading(one)
        self._done += 1
        self._act_on_held_up(one.order)

    def _act_on_held_up(self, ended: Order) -> None:
        """Acts on what waited for an order that has ended, and on what waited for that."""
        all_ended = deque([ended])
        while all_ended:
            for order in self._line.end(sessions_of(all_ended.popleft())):
                self._act(order)
                if not goes_in_slices(order):
                    all_ended.append(order)

    def _finish_unfinished(self) -> None:
        """Goes on with what is unfinished, and acts on all that was held up, to the end."""
        while not self._line.is_open:
            self._take_turn(math.inf)

    # ---- running at tier 0 ----

    def _begin_run(self, run: Run) -> None:
        rows, failed, spare = self._allocate_rows(run.submission)
        unfinished = _Unfinished(run, deque(rows), failed, spare)
        self._unfinished.append(unfinished)
        self._turns.add(unfinished.tenant, unfinished)

    def _run_slice(self, unfinished: _Unfinished, until_ns: float) -> _Progress:
        progress = self._go_on_until(unfinished, until_ns)
        if progress is _Progress.WAITS or (unfinished.used_ns >= LASTING_NS and progress is _Progress.GOES_ON):
            self._tell_that_it_lasts(unfinished)
        return progress

    def _tell_that_it_lasts(self, unfinished: _Unfinished) -> None:
        if not unfinished.is_reported:
            unfinished.is_reported = True
            self._report(Lasts(unfinished.order.number))

    def _go_on_until(self, unfinished: _Unfinished, until_ns: float) -> _Progress:
        with np.errstate(all="ignore"):
            while unfinished.rows:
                if not self._go_on(unfinished, unfinished.rows[0], until_ns):
                    return _Progress.WAITS if unfinished.steps is None else _Progress.GOES_ON
        return _Progress.ENDED

    def _go_on(self, unfinished: _Unfinished, row: Row, until_ns: float) -> bool:
        """Whether the row has come to its end.

        What the array library raises, of whatever kind, is the row's own matter: others must not fail with it.
        """
        try:
            if row.session.state is SessionState.CLOSED:
                failure = FailedRow(row, "cancelled", "the session has ended")
            elif not self._run_ops(unfinished, row, until_ns):
                return False
            else:
                self._leave_row(unfinished)
                return True
        except MemoryError as error:
            failure = FailedRow(row, "out_of_memory", str(error) or "the device has no room for intermediate values")
        except Exception as error:
            log.exception("a row failed at tier 0")
            failure = FailedRow(row, "server_fault", f"running op by op failed: {type(error).__name__}")
        self._leave_row(unfinished)
        unfinished.failed.append(failure)
        self._release(tuple(row.outputs))
        return True

    def _run_ops(self, unfinished: _Unfinished, row: Row, until_ns: float) -> bool:
        """Whether all ops of the row have run. Raises OutOfMemory."""
        if unfinished.steps is None:
            if not self._may_begin_row(unfinished):
                return False
            unfinished.steps = self._steps_of(row)
        for _ in unfinished.steps:  # noqa: SIM110 - an op is run too often for a generator of its own
            if time.perf_counter_ns() >= until_ns:
                return False
        return True

    def _leave_row(self, unfinished: _Unfinished) -> None:
        """The row under way has ended: what it took beside its blocks goes back."""
        self._stop(unfinished)
        unfinished.rows.popleft()

    def _stop(self, unfinished: _Unfinished) -> None:
        if unfinished.steps is not None:
            unfinished.steps.close()
            unfinished.steps = None
        self._reserved_bytes -= unfinished.reserved_bytes
        unfinished.reserved_bytes = 0

    def _end_run(self, unfinished: _Unfinished) -> None:
        self._unfinished.remove(unfinished)
        number, submission = unfinished.order
        self._complete_run(
            number, submission, unfinished.failed, unfinished.spare, time.perf_counter_ns() - unfinished.used_ns
        )

    def _may_begin_row(self, unfinished: _Unfinished) -> bool:
        """Whether the next row need not wait for other runs; then it has reserved what it takes. Raises OutOfMemory."""
        known = self._known_of(unfinished.entry)
        if known.steps is None and self._is_under_way(unfinished.entry):
            return False  # until it is made ready, by another run
        size_bytes = known.at_most_bytes if self._fits(known.at_most_bytes) else self._exact_bytes(unfinished.entry)
        if not self._fits(size_bytes):
            self._make_room(size_bytes, above_bytes=size_bytes)
        if self._fits(size_bytes):
            self._reserved_bytes += size_bytes
            unfinished.reserved_bytes = size_bytes
            return True
        if self._exceeds(size_bytes) or unfinished.retreats >= MOST_RETREATS:
            used_bytes = self._live_bytes + self._reserved_bytes
            raise OutOfMemory(
                f"op by op the intermediate values take {size_bytes} bytes beside the {used_bytes} bytes in use"
            )
        return False

    def _known_of(self, entry: ProgramEntry) -> _Known:
        known = self._known.get(entry)
        if known is None:
            known = self._known[entry] = _Known(most_intermediate_bytes(entry.program))
        return known

    def _is_under_way(self, entry: ProgramEntry) -> bool:
        return any(other.entry is entry and other.steps is not None for other in self._unfinished)

    def _exact_bytes(self, entry: ProgramEntry) -> int:
        """What the values of a row take. They are counted only where that decides: it takes as long as many ops."""
        known = self._known_of(entry)
        if known.exact_bytes is None:
            known.exact_bytes = intermediate_bytes(entry.program)
        return known.exact_bytes

    def _steps_of(self, row: Row) -> Generator[None, None, None]:
        known = self._known_of(row.entry)
        if known.steps is None:
            known.steps = yield from prepare(self._device, self._repertoire, row.entry)
        yield from run_op_by_op(self._device, known.steps, row)

    def _fits(self, size_bytes: int) -> bool:
        return not self._exceeds(self._reserved_bytes + size_bytes)

    def _exceeds(self, size_bytes: int) -> bool:
        """Whether memory does not hold so much beside all values."""
        return self._live_bytes + size_bytes > self._device.info.memory_bytes

    def _make_room(self, size_bytes: int, *, above_bytes: int = 0) -> None:
        """Makes so much fit, if that can be had from what is held up and from runs that have reserved more."""
        if self._exceeds(size_bytes):
            self._release_early()
        self._reserve_closely()
        lacking_bytes = self._live_bytes + self._reserved_bytes + size_bytes - self._device.info.memory_bytes
        self._retreat(lacking_bytes, above_bytes=above_bytes)

    def _reserve_closely(self) -> None:
        for one in self._unfinished:
            if one.reserved_bytes:
                exact_bytes = self._exact_bytes(one.entry)
                self._reserved_bytes += exact_bytes - one.reserved_bytes
                one.reserved_bytes = exact_bytes

    def _retreat(self, lacking_bytes: int, *, above_bytes: int = 0) -> None:
        reserved_bytes = {one: one.reserved_bytes for one in self._unfinished if one.reserved_bytes}
        for one in giving_way(reserved_bytes, lacking_bytes, above_bytes=above_bytes):
            self._stop(one)
            one.retreats += 1

    def _release_early(self) -> None:
        """What is held up to be released goes now, unless an order before it needs it."""
        waiting = self._line.orders()
        needed = {value for order in waiting for value in values_needed(order)}
        for order in waiting:
            if isinstance(order, Release):
                self._release(tuple([value for value in order.values if value not in needed]))

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
        """Raises OutOfMemory, but not because of what waits to be released, or is reserved for unfinished runs."""
        if self._line.is_open:
            return take()
        if not self._fits(size_bytes):
            self._make_room(size_bytes)
        try:
            return take()
        except OutOfMemory:
            if not self._fits(size_bytes):
                raise
        # The device has less room than was counted: it rounds sizes, and memory may be in pieces.
        self._release_early()
        self._retreat(self._reserved_bytes)
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
            self._when_reached(lambda: Missing(fetching))  # behind the report of why it is
            return
        readback: Readback = self._device.read(value.block, value.spec.size_bytes)
        self._when_reached(lambda: Brought(fetching, readback.data()))

    def _begin_reading(self, read: Read) -> None:
        reading = _Reading(read, self._copy_of(read.fetching.value))
        self._turns.add(reading.tenant, reading)

    def _copy_of(self, value: Value) -> LargeRead | None:
        """None if the value is not there, or the host has no room for it."""
        if value.block is None:
            return None
        try:
            return LargeRead(self._device, value.block, value.spec.size_bytes)
        except MemoryError:
            log.warning("the host has no room for a fetched value of %d bytes", value.spec.size_bytes)
            return None

    def _read_slice(self, reading: _Reading, until_ns: float) -> _Progress:
        copy = reading.copy
        if copy is not None and reading.is_unwanted:
            copy.cut_short()
        while copy is not None and not copy.is_over:
            if not copy.go_on():
                return _Progress.WAITS
            if time.perf_counter_ns() >= until_ns:
                return _Progress.GOES_ON
        return _Progress.ENDED

    def _end_reading(self, reading: _Reading) -> None:
        fetching, copy, used_ns = reading.order.fetching, reading.copy, reading.used_ns
        if copy is None or reading.is_unwanted:
            self._when_reached(lambda: Missing(fetching, used_ns))
        else:
            self._when_reached(lambda: Brought(fetching, copy.data(), used_ns))

    # ---- completion ----

    def _when_reached(self, report: Callable[[], Report]) -> None:
        fence = self._device.fence()
        if fence.is_reached() and self._handed_over == self._completed:
            self._report(report())
        else:
            self._handed_over += 1
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
            self._completed += 1
