"""Takes orders in turn and has each acted on, by one thread at a time. Decides nothing.

This is the device thread. On a GPU, which computes by itself, the engine thread acts on short orders as it gives
them, if the device thread has none: then no thread has to be woken, and none waits for the interpreter's lock.

The engine thread gives orders through one queue, and the device thread acts on them in their order, so that
a block that is released may be reused by any later order. A run at tier 0, and the read of a large value, take several
slices; orders of other sessions that come in between may overtake it (see `unfinished_orders`), and several unfinished
orders take turns. The device thread does not wait for the device: the completion thread waits for fences, in order, and
reports the work behind them. A run also copies the results that clients wait for to the host, and its report carries
them.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from weakref import WeakKeyDictionary

from fusewire_kernels.devices.base import Device
from fusewire_server.device.completion import Completion
from fusewire_server.device.device_time import DeviceTime
from fusewire_server.device.executor import Executor
from fusewire_server.device.joined_reports import JoinedReports
from fusewire_server.device.memory.allocation import Allocation
from fusewire_server.device.memory.device_memory import DeviceMemory, MemoryCount
from fusewire_server.device.memory.tenant_reserve import TenantReserve
from fusewire_server.device.orders import (
    Broken,
    Load,
    NoKernel,
    Order,
    Read,
    Report,
    Run,
    goes_in_slices,
    is_brief,
    is_short,
    sessions_of,
)
from fusewire_server.device.sliced_read import SlicedRead
from fusewire_server.device.unfused.one_ops import FindKernels, OneOps
from fusewire_server.device.unfused.program import UnfusedProgram
from fusewire_server.device.unfused.run import UnfusedRun
from fusewire_server.programs.program_table import ProgramEntry
from fusewire_server.scheduling.time_shares import LOOK_S, ORDER_SLICE_NS, PAUSE_S, Progress, TimeShares, Waiting
from fusewire_server.scheduling.turns import Turns
from fusewire_server.scheduling.unfinished_orders import UnfinishedOrders


class DeviceThread:
    """Runs orders on a device. The device thread and the completion thread call `report`.

    `find_kernels` looks for compiled kernels of single ops, for programs that have no plan yet.
    """

    def __init__(
        self,
        device: Device,
        find_kernels: FindKernels,
        report: Callable[[Report], None],
        reserve: TenantReserve | None = None,
        *,
        shares_device: bool | None = None,
    ) -> None:
        """`shares_device`: whether the engine thread acts on short orders; if None, it does for a GPU."""
        self._device = device
        self._shares_device = device.info.is_gpu if shares_device is None else shares_device
        self._reports = JoinedReports(report)
        self._orders: queue.SimpleQueue[Sequence[Order] | None] = queue.SimpleQueue()
        self._given = 0  # how often orders were put in the queue; written by the engine thread
        self._done = 0  # for how many of these the device thread has done all that it can do now; written by it
        # Whoever holds it uses the device, and owns the fields that follow. The device thread holds it while it works.
        self._using_device = threading.Lock()
        self._got = 0
        self._unfinished: UnfinishedOrders[Order] = UnfinishedOrders()
        self._memory = DeviceMemory(device, self._unfinished, reserve)
        self._allocation = Allocation(device, self._memory)
        self._one_ops = OneOps(device, find_kernels)
        self._unfused: WeakKeyDictionary[ProgramEntry, UnfusedProgram] = WeakKeyDictionary()
        self._completion = Completion(device, self._reports, self._is_idle)
        self._executor = Executor(
            device, self._memory, self._allocation, self._completion, self._reports, self._one_ops
        )
        # The unfinished orders are in `_turns`, but for those that wait in `_lacking` for kernels.
        self._turns: Turns[UnfusedRun | SlicedRead] = Turns()
        self._lacking: list[UnfusedRun] = []
        self._shares = TimeShares()
        self._taken: deque[Order | None] = deque()  # taken out of the queue and not yet acted on
        self.busy_ns = 0  # written by the device thread; any thread may read it
        self._worker = threading.Thread(target=self._work, name="fusewire-device", daemon=True)

    @property
    def is_running(self) -> bool:
        return self._worker.is_alive()

    def start(self) -> None:
        self._completion.start()
        self._worker.start()

    def stop(self, timeout_s: float, last: Sequence[Order] = ()) -> None:
        """Ends both threads after all orders given so far and the `last`. Waits at most `timeout_s`. Any thread."""
        if last:
            self._orders.put(last)
        self._orders.put(None)
        self._worker.join(timeout_s)

    def waited_ns(self, now_ns: int) -> int:
        """Returns for how long the device has not finished the oldest work that is waited for. Any thread."""
        return self._completion.waited_ns(now_ns)

    def order(self, *orders: Order) -> None:
        """Acts on orders, or queues them behind all earlier ones. Engine thread.

        Orders that are given together wake the device thread once.
        """
        if orders and not (self._shares_device and self._acts_here(orders)):
            self._given += 1
            self._orders.put(orders)

    def _acts_here(self, orders: Sequence[Order]) -> bool:
        """Acts on orders if they are short and nothing is under way. Returns whether it has. Engine thread.

        If the device were busy, a call might wait for room in its queue.
        """
        if self._given != self._done or not self._completion.awaits_nothing or not all(map(is_short, orders)):
            return False
        if not self._using_device.acquire(blocking=False):  # the device thread is about to wait
            return False
        try:
            for order in orders:
                self._consider(order)
            self._reports.flush()
        except Exception as error:  # noqa: BLE001 - the device can no longer be trusted, whatever the error is
            self._reports.add(Broken(error))
        finally:
            self._using_device.release()
        return True

    def _is_idle(self) -> bool:
        """Returns whether no order waits."""
        return not self._taken and self._orders.empty()

    def memory(self) -> MemoryCount:
        return self._memory.count()

    @property
    def values_bytes(self) -> int:
        """The bytes of all blocks but temporaries, which give way to values. Any thread."""
        return self._memory.values_bytes

    def _work(self) -> None:
        self._using_device.acquire()  # for good, but for the time in `_wait`
        try:
            while (order := self._next_order()) is not None:
                self._consider(order)
            self._finish_unfinished()
        except Exception as error:  # noqa: BLE001 - the device can no longer be trusted, whatever the error is
            self._reports.add(Broken(error))
        # Before the device closes: the completion thread may still wait for fences of the device.
        self._completion.end()
        self._device.close()

    def _next_order(self) -> Order | None:
        """Waits for the next order of the loop. Runs unfinished orders meanwhile, and when it is their turn."""
        while not self._turns.is_empty:
            if self._shares.is_turn(time.perf_counter_ns(), self._look()):
                self._take_turns()
                if self._is_idle() and not self._turns.is_empty:
                    time.sleep(LOOK_S)
            if self._taken:  # return after one turn of the unfinished orders, even if their next turn is already due
                return self._taken.popleft()
        if self._is_idle():
            self._reports.flush()
        if not self._taken:
            self._take(self._wait())
        return self._taken.popleft()

    def _wait(self) -> Sequence[Order] | None:
        """Waits for orders. Lets the engine thread use the device meanwhile."""
        self._done = self._got
        self._using_device.release()
        try:
            return self._orders.get()
        finally:
            self._using_device.acquire()

    def _look(self) -> Waiting:
        """Tells which kind of order waits. Takes one from the queue if none has been taken."""
        if not self._taken:
            try:
                self._take(self._orders.get_nowait())  # up to CPython 3.12, `get` with a timeout may never return
            except queue.Empty:
                self._reports.flush()
                return Waiting.NOTHING
        order = self._taken[0]
        return Waiting.BRIEF if order is not None and is_brief(order) else Waiting.ORDER

    def _take(self, orders: Sequence[Order] | None) -> None:
        self._got += 1
        self._taken.extend((None,) if orders is None else orders)

    def _consider(self, order: Order) -> None:
        """Acts on an order, now or when the unfinished orders that it must wait for have ended."""
        in_slices = goes_in_slices(order)
        is_alone = self._unfinished.is_empty and not in_slices
        if is_alone or self._unfinished.try_begin(order, sessions_of(order), goes_in_slices=in_slices):
            self._act(order)

    def _act(self, order: Order) -> None:
        began_ns, in_slices = time.perf_counter_ns(), goes_in_slices(order)
        if in_slices:
            self._begin(order)
        else:
            self._executor.act(order)
        if isinstance(order, Load | NoKernel):
            self._look_for_kernels_again(order)
        used_ns = time.perf_counter_ns() - began_ns
        self._shares.overtaken(used_ns)
        self.busy_ns += used_ns

    # ---- orders that go in slices ----

    def _begin(self, order: Order) -> None:
        self._shares.begin(is_first=self._turns.is_empty)
        one = self._sliced(order)
        self._turns.add(one.tenant, one)

    def _sliced(self, order: Order) -> UnfusedRun | SlicedRead:
        if isinstance(order, Run):
            entry = order.submission.entry
            unfused = self._unfused.setdefault(entry, UnfusedProgram(entry.program))
            return UnfusedRun(
                order,
                unfused,
                self._one_ops,
                self._allocation,
                self._memory,
                DeviceTime(self._device),
                self._reports.add,
            )
        assert isinstance(order, Read), "only runs and reads go in slices"
        return SlicedRead(self._device, order)

    def _look_for_kernels_again(self, news: Load | NoKernel) -> None:
        """Has those runs go on that lacked only these kernels, which have come or will never come."""
        lacking, self._lacking = self._lacking, []
        for run in lacking:
            if run.goes_on_after(news):
                self._turns.add(run.tenant, run)
            else:
                self._lacking.append(run)

    def _take_turns(self) -> None:
        """Runs unfinished orders, slice by slice, for as long as their turn lasts."""
        self._shares.begin_turn(time.perf_counter_ns())
        while self._take_turn() and not self._turns.is_empty:
            time.sleep(PAUSE_S)

    def _take_turn(self) -> bool:
        """Runs one slice of the unfinished order that is next.

        Returns whether another slice may follow in this turn.
        """
        one = self._turns.take()
        assert one is not None, "an order waits for its turn"
        began_ns = time.perf_counter_ns()
        with one.device_time:
            progress = one.go_on(began_ns + ORDER_SLICE_NS)
        now_ns = time.perf_counter_ns()
        one.used_ns += now_ns - began_ns
        self.busy_ns += now_ns - began_ns
        if progress is Progress.ENDED:
            self._end(one)
        elif progress is Progress.LACKS_KERNELS and isinstance(one, UnfusedRun):
            self._lacking.append(one)
        else:
            self._turns.add(one.tenant, one)
        return self._shares.goes_on(began_ns, now_ns, progress)

    def _end(self, one: UnfusedRun | SlicedRead) -> None:
        if isinstance(one, UnfusedRun):
            number, submission = one.order
            self._executor.complete_run(number, submission, one.failed, one.spare, one.device_time)
        else:
            self._completion.when_reached(one.outcome)
        self._act_on_held_up(one.order)

    def _act_on_held_up(self, ended: Order) -> None:
        """Acts on the orders that waited for an ended order, and on those that waited for these in turn."""
        all_ended = deque([ended])
        while all_ended:
            for order in self._unfinished.end(sessions_of(all_ended.popleft())):
                self._act(order)
                if not goes_in_slices(order):
                    all_ended.append(order)

    def _finish_unfinished(self) -> None:
        """Runs all unfinished orders to their end, and acts on all orders that were held up.

        Rows that lack kernels fail, because nobody brings these any more.
        """
        while not self._unfinished.is_empty:
            lacking, self._lacking = self._lacking, []
            for run in lacking:
                run.give_up()
                self._turns.add(run.tenant, run)
            self._take_turn()
            time.sleep(PAUSE_S)
