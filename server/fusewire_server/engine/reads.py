"""Orders copies of fetched values to the host, but no more than the client takes as answers."""

from __future__ import annotations

import time
from collections.abc import Callable

from fusewire_protos.errors import BY_NAME
from fusewire_server.device import orders
from fusewire_server.engine.device_orders import DeviceOrders
from fusewire_server.programs.counters import Counters
from fusewire_server.programs.failure import Failure
from fusewire_server.scheduling.lanes import Lanes
from fusewire_server.sessions.effects import Effects
from fusewire_server.sessions.session import PendingFetch, Session
from fusewire_server.sessions.values import end_reading


class Reads:
    """The reads of all sessions. The engine thread owns this state.

    `wake` is called when the server has an answer for a session's client. `no_room` completes the error text for a
    value that could not be computed because the device had no memory.
    """

    def __init__(
        self,
        device_orders: DeviceOrders,
        lanes: Lanes,
        counters: Counters,
        wake: Callable[[Session], None],
        no_room: Callable[[str, str], str],
    ) -> None:
        self._orders = device_orders
        self._lanes = lanes
        self._counters = counters
        self._wake = wake
        self._no_room = no_room

    def order(self, effects: Effects) -> None:
        """Orders reads of values that are ready: now, or after their client has taken earlier answers."""
        if not effects.reads:
            return
        reads, effects.reads = effects.reads, []
        for pending in reads:
            session = pending.session
            if not session.reads and _may_read(session, pending.value.size_bytes):
                self._order(pending, effects)
            else:
                session.reads[pending.fetch] = pending
                self._order_waiting(session, effects)

    def take_carried(self, effects: Effects) -> tuple[PendingFetch, ...]:
        """Takes the fetches that a submission carries, because the submission makes the fetched values ready.

        The other fetches stay in `effects`.
        """
        carried = tuple([pending for pending in effects.reads if self._may_be_carried(pending)])
        if carried:
            taken = set(carried)
            effects.reads = [pending for pending in effects.reads if pending not in taken]
            for pending in carried:
                end_reading(pending, effects.released)
        return carried

    def _may_be_carried(self, pending: PendingFetch) -> bool:
        """Returns whether a submission may carry the fetch. If so, counts the bytes of the value for the client now."""
        session = pending.session
        if session.reads or orders.is_large(pending) or not _may_read(session, pending.value.size_bytes):
            return False
        self._begin(pending)
        return True

    def _begin(self, pending: PendingFetch) -> None:
        pending.session.answers.begin_read(pending.fetch, pending.value.size_bytes)
        pending.ordered_at_ns = time.monotonic_ns()

    def go_on(self, session: Session) -> None:
        """Orders reads that waited for the client to take answers, or for other reads to end."""
        if not session.reads:
            return
        effects = Effects()
        self._order_waiting(session, effects)
        self._orders.add_release([session], effects.released)

    def end(self, report: orders.Brought | orders.Missing) -> None:
        """Answers a fetch whose value has come to the host or does not come."""
        if isinstance(report, orders.Brought):
            self._brought(report.pending, report.data)
        else:
            self._missing(report.pending, report.refusal)
        self.go_on(report.pending.session)

    def _brought(self, pending: PendingFetch, data: memoryview) -> None:
        session, now_ns = pending.session, time.monotonic_ns()
        self._counters.copy_out.add(now_ns - pending.ordered_at_ns)
        session.usage.answer.add(now_ns - pending.ordered_at_ns)
        session.usage.wait.add(max(now_ns - pending.asked_at_ns, 0))
        if pending.is_unwanted:
            session.drop_read(pending.fetch)
            return
        if pending.value.failure is not None:  # an op has failed, and something else had written the value's memory
            session.answer_failure(pending.fetch, pending.value.failure)
        else:
            session.answer(pending.fetch, data)
        session.end_waiting(now_ns)
        self._wake(session)

    def _missing(self, pending: PendingFetch, refusal: str | None) -> None:
        """Answers a fetch with the value's failure, or with `refusal`, or else with the lack of device memory."""
        if pending.is_unwanted:
            pending.session.drop_read(pending.fetch)
            return
        text = refusal or self._no_room("the device has no memory for it", pending.session.tenant)
        no_room = Failure(BY_NAME["out_of_memory"], text, 0, 0)
        pending.session.answer_failure(pending.fetch, pending.value.failure or no_room)
        pending.session.end_waiting(time.monotonic_ns())
        self._wake(pending.session)

    def _order_waiting(self, session: Session, effects: Effects) -> None:
        while session.reads:
            pending = next(iter(session.reads.values()))
            if not _may_read(session, pending.value.size_bytes):
                return
            del session.reads[pending.fetch]
            self._order(pending, effects)

    def _order(self, pending: PendingFetch, effects: Effects) -> None:
        self._begin(pending)
        self._orders.add(orders.Read(pending))
        if orders.is_large(pending):
            self._lanes.begin_large_read(pending.session)
        end_reading(pending, effects.released)


def _may_read(session: Session, size_bytes: int) -> bool:
    """Returns whether a value may come to the host now. If the client has taken all values, one may come."""
    answers = session.answers
    if not answers.may_read(size_bytes):
        return False
    return answers.unread_bytes == 0 or session.tenant_bytes.has_room(session, size_bytes)
