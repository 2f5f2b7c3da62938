"""What the parts of a session share: the stream of frames, the credit, the transport, and why the session has ended.

Locks, in the order in which they may be taken: a recorder's, then this one. None is held while waiting, nor while
the transport is woken. A finaliser or a signal handler may run anywhere, also in a thread that holds them: they are
reentrant, so that it may record, and whatever sends or waits asks first whether it is such an intruder.
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

_LONGEST_WAIT_S = threading.TIMEOUT_MAX / 2  # a user's may be infinite, which waits refuse


class Spending(NamedTuple):
    """Entries about to be posted, and the state in which they are."""

    place: int  # how many entries precede them
    entries: tuple[Outgoing, ...]
    sent: Amount  # in total, with them


class SessionState:
    """The state that frames change, for whoever holds the lock."""

    def __init__(self, transport: Transport, client: str) -> None:
        self.transport = transport
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)  # credit has come back, or the session has ended
        # All below is guarded by the lock.
        self.stream = ClientStream(client)
        self.credit = Credit(Amount())
        self.limits = wire.Limits()
        self.ended: FusewireError | None = None  # why

    def check_open(self) -> None:
        """Raises why the session has ended, if it has. Needs no lock: after a fork another thread may have held it."""
        if self.ended is not None:
            raise type(self.ended)(str(self.ended))

    def is_interrupted_here(self, recorder: Recorder) -> bool:
        """Whether the caller is a finaliser or signal handler that interrupted this thread as it held a lock."""
        # What a condition asks of its lock, too.
        return self.lock._is_owned() or recorder.lock._is_owned()  # type: ignore[attr-defined, no-any-return]

    def check_may_wait(self, recorder: Recorder) -> None:
        """Raises RequestError where waiting would never end."""
        if self.is_interrupted_here(recorder):
            raise RequestError("a finaliser or signal handler that interrupts Fusewire itself cannot read or upload")
        if self.transport.is_own_thread():
            raise RequestError("what runs in the I/O thread, as callbacks do, cannot read, upload or wait for credit")

    def post(self, *outgoing: Outgoing) -> None:
        """Adds to what waits for a frame; whoever is in a hurry wakes the transport."""
        with self.lock:
            self.stream.post(*outgoing)

    def spending(self, cost: Amount, entries: Sequence[Outgoing]) -> Spending:
        """Under the lock, as is `spend`."""
        return Spending(self.stream.waiting_entries, tuple(entries), self.credit.sent.plus(cost))

    def spend(self, spending: Spending) -> None:
        """Posts entries and takes the credit for them. May be begun again under the same hold of the lock."""
        if self.stream.waiting_entries == spending.place:
            self.stream.post(*spending.entries)
        self.credit.sent = spending.sent

    def wait_for_credit(self, cost: Amount, deadline_s: float | None) -> None:
        """Until `cost` may be sent. Raises WaitTimeout, or why the session has ended."""
        with self.lock:  # whose own entering no signal can split, as it can the condition's
            is_there = self.changed.wait_for(
                lambda: self.ended is not None or self.credit.admits(cost), left_s(deadline_s)
            )
        self.check_open()
        if not is_there:
            raise WaitTimeout("no credit came back in time; the work goes on")

    def renew_locks(self) -> None:
        """In a forked child: another thread of the parent may have held the old ones for ever."""
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)


def finish(act: Callable[[], None]) -> None:
    """Does `act` to its end, though a signal handler may raise within; for an act that may be begun again."""
    try:
        act()
    except BaseException:
        act()
        raise


def deadline_after(timeout_s: float | None) -> float | None:
    """When `timeout_s` from now is over, on the monotonic clock. Raises ArgumentError for what is no time."""
    if timeout_s is None:
        return None
    if not isinstance(timeout_s, Real) or math.isnan(timeout_s):
        raise ArgumentError(f"a timeout is a number of seconds, not {timeout_s!r}")
    return time.monotonic() + float(timeout_s)


def left_s(deadline_s: float | None) -> float | None:
    """How long until a deadline, as waits take it."""
    return None if deadline_s is None else min(max(deadline_s - time.monotonic(), 0.0), _LONGEST_WAIT_S)
