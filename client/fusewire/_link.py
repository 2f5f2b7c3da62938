"""What the parts of a session share: the stream of frames, the credit, the transport, and why the session has ended.

Locks, in the order in which they may be taken: a recorder's, then this one. None is held while waiting, nor while
the transport is woken.
"""

from __future__ import annotations

import threading
import time

from fusewire._credit import Amount, Credit
from fusewire._errors import FusewireError, WaitTimeout
from fusewire._stream import ClientStream, Outgoing
from fusewire._transport import Transport
from fusewire_protos.v1 import fusewire_pb2 as wire


class Link:
    """The state that frames change, for whoever holds the lock."""

    def __init__(self, transport: Transport, client: str) -> None:
        self.transport = transport
        self.lock = threading.Lock()
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

    def post(self, *outgoing: Outgoing) -> None:
        """Adds to what waits for a frame; whoever is in a hurry wakes the transport."""
        with self.lock:
            self.stream.post(*outgoing)

    def wait_for_credit(self, cost: Amount, deadline_s: float | None) -> None:
        """Until `cost` may be sent. Raises WaitTimeout, or why the session has ended."""
        with self.changed:
            is_there = self.changed.wait_for(
                lambda: self.ended is not None or self.credit.admits(cost), left_s(deadline_s)
            )
        self.check_open()
        if not is_there:
            raise WaitTimeout("no credit came back in time; the work goes on")

    def renew_locks(self) -> None:
        """In a forked child: another thread of the parent may have held the old ones for ever."""
        self.lock = threading.Lock()
        self.changed = threading.Condition(self.lock)


def deadline_after(timeout_s: float | None) -> float | None:
    """When `timeout_s` from now is over, on the monotonic clock."""
    return None if timeout_s is None else time.monotonic() + timeout_s


def left_s(deadline_s: float | None) -> float | None:
    """How long until a deadline, as waits take it."""
    return None if deadline_s is None else max(deadline_s - time.monotonic(), 0.0)
