"""The state that the parts of a session share: stream, credit, limits, transport, and the reason of the session's end.

A thread takes a recorder's lock before the lock of this state, never after it. No lock is held while a thread waits or
wakes the transport. A finaliser or a signal handler may interrupt a thread that holds a lock. The locks are reentrant,
so that such code can record; before it sends or waits, `is_interrupted_here` detects it.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from numbers import Real
from typing import NamedTuple

from fusewire._errors import ArgumentError, FusewireError, RequestError, WaitTimeout
from fusewire._recording.recorder import Recorder
from fusewire._stream.credit import Credit
from fusewire._stream.frames import ClientStream, Outgoing
from fusewire._transport.interface import Transport
from fusewire_protos.credit import Amount
from fusewire_protos.v1 import fusewire_pb2 as wire

_LONGEST_WAIT_S = threading.TIMEOUT_MAX / 2  # users may pass infinity, for which waiting on a lock raises


class Spending(NamedTuple):
    """Entries to be posted together with the credit that they take."""

    place: int  # how many entries wait before them
    entries: tuple[Outgoing, ...]
    sent: Amount  # all that the session will have sent, these entries included


class SessionState:
    """State that frames change. The fields below the lock may be used by the holder of the lock alone."""

    def __init__(self, transport: Transport, client: str) -> None:
        self.transport = transport
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)  # credit has come back, or the session has ended
        # Guarded by the lock.
        self.stream = ClientStream(client)
        self.credit = Credit(Amount())
        self.limits = wire.Limits()
        self.ended: FusewireError | None = None  # the reason; None while the session is open

    def check_open(self) -> None:
        """Raises the reason of the session's end, if it has ended. Takes no lock: a fork may have left it locked."""
        if self.ended is not None:
            raise type(self.ended)(str(self.ended))

    def is_interrupted_here(self, recorder: Recorder) -> bool:
        """Whether the caller is a finaliser or signal handler that interrupted this thread while it held a lock."""
        # `threading.Condition` calls `_is_owned` as well.
        return self.lock._is_owned() or recorder.lock._is_owned()  # type: ignore[attr-defined, no-any-return]

    def check_may_wait(self, recorder: Recorder) -> None:
        """Raises RequestError where a wait would never end."""
        if self.is_interrupted_here(recorder):
            raise RequestError("a finaliser or signal handler that interrupts Fusewire itself cannot read or upload")
        if self.transport.is_own_thread():
            raise RequestError("code in the I/O thread, such as a callback, cannot read, upload or wait for credit")

    def post(self, *outgoing: Outgoing) -> None:
        """Adds entries to those that wait for a frame. Does not wake the transport."""
        with self.lock:
            self.stream.post(*outgoing)

    def spending(self, cost: Amount, entries: Sequence[Outgoing]) -> Spending:
        """Prepares to post `entries` at the price of `cost`. The caller holds the lock until after `spend`."""
        return Spending(self.stream.waiting_entries, tuple(entries), self.credit.sent.plus(cost))

    def spend(self, spending: Spending) -> None:
        """Posts the entries and takes their credit. If interrupted, it may be called again while the lock is held."""
        if self.stream.waiting_entries == spending.place:
            self.stream.post(*spending.entries)
        self.credit.sent = spending.sent

    def wait_for_credit(self, cost: Amount, deadline_s: float | None) -> None:
        """Waits until `cost` may be sent. Raises WaitTimeout, or the reason of the session's end."""
        with self.lock:  # entering the lock itself is atomic for signals; entering the condition is not
            is_there = self.changed.wait_for(
                lambda: self.ended is not None or self.credit.admits(cost), left_s(deadline_s)
            )
        self.check_open()
        if not is_there:
            raise WaitTimeout("no credit came back in time; the work goes on")

    def renew_locks(self) -> None:
        """In a forked child, where a lock that another thread of the parent held stays locked."""
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)


def finish(act: Callable[[], None]) -> None:
    """Calls `act`, and calls it again if a signal handler has raised within it. So `act` must be repeatable."""
    try:
        act()
    except BaseException:
        act()
        raise


def deadline_after(timeout_s: float | None) -> float | None:
    """The moment `timeout_s` from now, on the monotonic clock. Raises ArgumentError unless it is a number or None."""
    if timeout_s is None:
        return None
    if not isinstance(timeout_s, Real) or math.isnan(timeout_s):
        raise ArgumentError(f"a timeout is a number of seconds, not {timeout_s!r}")
    return time.monotonic() + float(timeout_s)


def left_s(deadline_s: float | None) -> float | None:
    """The seconds until a deadline, as an argument of waits; None without a deadline."""
    return None if deadline_s is None else min(max(deadline_s - time.monotonic(), 0.0), _LONGEST_WAIT_S)
