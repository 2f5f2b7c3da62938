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
from fusewire_server.sessions.session import Fetching, Session
from fusewire_server.sessions.values import end_reading


class Reads:
    """The reads of all sessions. The loop thread owns this state.

    `wake` is called when the server has an answer for a session's client. `no_room` completes the error text for a
    value that could not be computed because the device had no memory.
    """

    def __init__(
        self,
        device_orders: DeviceOrders,
        lanes: Lanes,
        counters: Counters,
        wake: Callable[[Session], None],
        no_room: Callable[[str], str],
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
        for fetching in reads:
            session = fetching.session
            if not session.reads and _may_read(session, fetching.value.size_bytes):
                self._order(fetching, effects)
            else:
                session.reads[fetching.fetch] = fetching
                self._order_waiting(session, effects)

    def take_carried(self, effects: Effects) -> tuple[Fetching, ...]:
        """Takes the fetches that a submission carries, because the submission makes the fetched values ready.

        The other fetches stay in `effects`.
        """
        carried = tuple([fetching for fetching in effects.reads if self._may_be_carried(fetching)])
        if carried:
            taken = set(carried)
            effects.reads = [fetching for fetching in effects.reads if fetching not in taken]
            for fetching in carried:
                end_reading(fetching, effects.released)
        return carried

    def _may_be_carried(self, fetching: Fetching) -> bool:
        """Returns whether a submission may carry the fetch. If so, counts the bytes of the value for the client now."""
        session = fetching.session
        if session.reads or orders.is_large(fetching) or not _may_read(session, fetching.value.size_bytes):
            return False
        self._begin(fetching)
        return True

    def _begin(self, fetching: Fetching) -> None:
        fetching.session.answers.begin_read(fetching.fetch, fetching.value.size_bytes)
        fetching.told_at_ns = time.monotonic_ns()

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
            self._brought(report.fetching, report.data)
        else:
            self._missing(report.fetching, report.refusal)
        self.go_on(report.fetching.session)

    def _brought(self, fetching: Fetching, data: memoryview) -> None:
        session, now_ns = fetching.session, time.monotonic_ns()
        self._counters.copy_out.add(now_ns - fetching.told_at_ns)
        session.usage.answer.add(now_ns - fetching.told_at_ns)
        session.usage.wait.add(max(now_ns - fetching.asked_at_ns, 0))
        if fetching.is_unwanted:
            session.drop_read(fetching.fetch)
            return
        if fetching.value.failure is not None:  # an op has failed, and something else had written the value's memory
            session.answer_failure(fetching.fetch, fetching.value.failure)
        else:
            session.answer(fetching.fetch, data)
        session.end_waiting(now_ns)
        self._wake(session)

    def _missing(self, fetching: Fetching, refusal: str | None) -> None:
        """Answers a fetch with the value's failure, or with `refusal`, or else with the lack of device memory."""
        if fetching.is_unwanted:
            fetching.session.drop_read(fetching.fetch)
            return
        no_room = Failure(BY_NAME["out_of_memory"], refusal or self._no_room("the device has no memory for it"), 0, 0)
        fetching.session.answer_failure(fetching.fetch, fetching.value.failure or no_room)
        fetching.session.end_waiting(time.monotonic_ns())
        self._wake(fetching.session)

    def _order_waiting(self, session: Session, effects: Effects) -> None:
        while session.reads:
            fetching = next(iter(session.reads.values()))
            if not _may_read(session, fetching.value.size_bytes):
                return
            del session.reads[fetching.fetch]
            self._order(fetching, effects)

    def _order(self, fetching: Fetching, effects: Effects) -> None:
        self._begin(fetching)
        self._orders.add(orders.Read(fetching))
        if orders.is_large(fetching):
            self._lanes.begin_large_read(fetching.session)
        end_reading(fetching, effects.released)


def _may_read(session: Session, size_bytes: int) -> bool:
    """Returns whether a value may come to the host now. If the client has taken all values, one may come."""
    answers = session.answers
    if not answers.may_read(size_bytes):
        return False
    return answers.unread_bytes == 0 or session.tenant_bytes.has_room(session, size_bytes)
