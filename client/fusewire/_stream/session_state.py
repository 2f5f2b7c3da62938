"""Holds what the parts of a session share: stream, credit, limits, transport, and the reason of the session's end.

A thread that needs a recorder's lock and the lock of this state takes the recorder's lock first. A thread holds neither
lock while it waits or wakes the transport.

A finaliser or a signal handler may interrupt a thread that holds a lock. The locks are reentrant, so a finaliser or
handler can still record. Such code must not send or wait, so sending and waiting first call `is_interrupted_here`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from fusewire._errors import FusewireError, RequestError, WaitTimeout
from fusewire._profile.collector import Collector
from fusewire._recording.recorder import Recorder
from fusewire._stream.credit import Credit
from fusewire._stream.frames import NO_WISH, ClientStream, Outgoing, Wish
from fusewire._transport.deadlines import left_s
from fusewire._transport.interface import Transport
from fusewire_protos.credit import Amount
from fusewire_protos.v1 import fusewire_pb2 as wire


class SessionState:
    """The shared state of a session. Most of its fields are guarded by `lock`."""

    def __init__(self, transport: Transport, client: str, wish: Wish = NO_WISH) -> None:
        self.transport = transport
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)  # credit has come back, or the session has ended
        # The lock guards the fields below.
        self.stream = ClientStream(client, wish)
        self.credit = Credit(Amount())
        self.limits = wire.Limits()
        self.ended: FusewireError | None = None  # the reason; None while the session is open
        self.profile: Collector | None = None  # while a profile is on; the lock does not guard it
        self.credit_waiters: set[object] = set()  # one for each wait for credit; the lock does not guard it

    def check_open(self) -> None:
        """Raises the reason of the session's end, if the session has ended.

        Takes no lock, because a fork may have left the lock locked for ever.
        """
        if self.ended is not None:
            raise type(self.ended)(str(self.ended))

    def is_interrupted_here(self, recorder: Recorder) -> bool:
        """Whether this thread already holds the session's lock or the recorder's lock.

        If so, the caller is a finaliser or signal handler that interrupted the thread while the lock was held.
        """
        # `_is_owned` is private, but `threading.Condition` calls this method as well.
        return self.lock._is_owned() or recorder.lock._is_owned()  # type: ignore[attr-defined, no-any-return]

    def check_may_wait(self, recorder: Recorder) -> None:
        """Raises RequestError where a wait would never end."""
        if self.is_interrupted_here(recorder):
            raise RequestError("a finaliser or signal handler that interrupts Fusewire itself cannot read or upload")
        if self.transport.is_own_thread():
            raise RequestError(
                "code in the I/O thread, such as a callback, and code that interrupts its work in another thread, "
                "cannot read, upload or wait for credit"
            )

    def post(self, *outgoing: Outgoing) -> None:
        """Appends entries to the entries that wait for a frame. Does not wake the transport."""
        with self.lock:
            self.stream.post(*outgoing)

    def spend(self, cost: Amount, entries: Sequence[Outgoing], then: Callable[[], None]) -> None:
        """Posts entries, takes their credit and calls `then`: all of it, even if a signal handler raises meanwhile.

        The caller holds the lock. `then` must be repeatable.
        """
        place, sent = self.stream.waiting_entries, self.credit.sent.plus(cost)
        try:
            self._spend(place, entries, sent, then)
        except BaseException:
            self._spend(place, entries, sent, then)
            raise

    def _spend(self, place: int, entries: Sequence[Outgoing], sent: Amount, then: Callable[[], None]) -> None:
        self.stream.post_at(place, entries)
        self.credit.sent = sent
        then()

    def wait_for_credit(self, cost: Amount, deadline_s: float | None) -> None:
        """Waits until work of this cost may be sent. Raises WaitTimeout, or the reason of the session's end."""
        wait, profile, began_ns = object(), self.profile, time.monotonic_ns()
        try:
            self.credit_waiters.add(wait)  # no thread: a signal handler may wait while its thread does
            self.transport.wake()
            with self.lock:  # a signal cannot interrupt entering the lock, but can interrupt entering the condition
                is_there = self.changed.wait_for(
                    lambda: self.ended is not None or self.credit.admits(cost), left_s(deadline_s)
                )
        finally:
            self.credit_waiters.discard(wait)
            if profile is not None:
                profile.on_waited("credit", began_ns)
        self.check_open()
        if not is_there:
            raise WaitTimeout("no credit came back in time; the work goes on")

    def renew_locks(self) -> None:
        """Replaces the locks in a forked child, because a lock that another thread held in the parent stays locked."""
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
