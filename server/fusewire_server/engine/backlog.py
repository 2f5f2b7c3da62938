"""Shares the engine thread's time: applies frames in slices, those of the tenant first that has used the least time.

A frame is applied as it comes, for one slice at most. What is left of it waits here, and so do long frames that come
while others wait, and all frames once costly ones have taken long enough in this turn of the event loop. So the short
frames of many clients share a turn, and then a submission. In each turn, frames that wait are applied until one is not
finished in its slice, or the time of a turn is over: first for the tenant, and of this tenant for the session, that has
used the least time of the engine thread. So a client's costly frames make its own frames wait, and others wait for a
turn.

A frame counts as applied as soon as it is here, and then its client does not send the frame again. So the rest of the
frame is applied even if the frame's stream breaks. The server reads the session's next frame only after the rest
has been applied. The rest waits while the device still has to write too many uploads of the session. The engine thread
owns this state.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import NamedTuple, Protocol

from fusewire_protos.errors import CaseError
from fusewire_server.engine.clock import Clock
from fusewire_server.engine.outcome import Unapplied
from fusewire_server.scheduling.accounts import TenantAccounts
from fusewire_server.sessions.entries.frame import Arrival, Item
from fusewire_server.sessions.session import Session

FRAME_SLICE_NS = 300_000
TURN_NS = 1_000_000  # after so much time for costly frames, others wait for the next turn of the event loop

Apply = Callable[[Session, Iterable[Item], Arrival, int], Item | None]


class Unread(Protocol):
    """Items that are decoded one by one on demand. Their number is known."""

    def __len__(self) -> int: ...

    def __next__(self) -> Item: ...


class Items:
    """The items of a frame that have not been applied, in order."""

    def __init__(self, read: Iterable[Item], *unread: Unread) -> None:
        self._read = deque(read)
        self._unread = unread

    def __len__(self) -> int:
        return len(self._read) + sum(map(len, self._unread))

    def take(self) -> Item:
        """Removes and returns the next item. Raises CaseError if the item cannot be decoded."""
        if self._read:
            return self._read.popleft()
        return next(next(unread for unread in self._unread if unread))

    def put_back(self, item: Item) -> None:
        """Puts an item before all other items."""
        self._read.appendleft(item)

    def drop(self) -> None:
        """Drops all items, because nothing more will be applied."""
        self._read.clear()
        self._unread = ()


class _Rest(NamedTuple):
    """The items of a frame that have not been applied. The result of `applied` is the error that ended the session."""

    items: Items
    arrival: Arrival
    applied: Unapplied


class Backlog:
    """Frames that have been applied in part: at most one frame for each session.

    `apply` applies items; its last argument is the time at which it began. `apply` stops at an item that it cannot
    finish in one step, and returns the rest of that item. `give_up` ends a session if the rest of its frame cannot be
    applied; its second argument is the name of the case.
    """

    def __init__(self, clock: Clock, apply: Apply, give_up: Callable[[Session, str], None]) -> None:
        self.slice_ns = FRAME_SLICE_NS
        self.turn_ns = TURN_NS
        self._clock = clock
        self._apply = apply
        self._give_up = give_up
        self._loop = asyncio.get_running_loop()
        self._accounts: TenantAccounts[Session] = TenantAccounts()  # of loop time
        self._rests: dict[Session, _Rest] = {}
        self._ready: set[Session] = set()  # those of them that wait for nothing but the engine thread
        self._alone_ns: dict[Session, int] = {}  # what sessions have used since anybody has waited, not yet charged
        self._is_turn_due = False  # whether `_turn` is going to be called
        self._costly_ns = 0  # what frames have used in this turn of the event loop beyond a slice each
        self._looked_ns = clock.thread_time_ns()  # the engine thread's processor time when it was looked at last

    @property
    def has_time(self) -> bool:
        """Tells whether a short frame that comes now is applied at once."""
        return self._costly_ns < self.turn_ns

    def open(self, session: Session) -> None:
        """Opens the account of a new session."""
        self._accounts.open(session)

    def charge(self, session: Session, time_ns: int) -> None:
        """Notes that a session has used time of the engine thread."""
        session.loop_ns += time_ns
        if time_ns > self.slice_ns:
            self._costly_ns += time_ns - self.slice_ns
        if self._ready:
            self._accounts.charge(session, time_ns)
        else:
            self._alone_ns[session] = self._alone_ns.get(session, 0) + time_ns

    def used_ns(self, began_ns: int) -> int:
        """Returns the time since `began_ns`, or less if the engine thread did not run all the time.

        Other threads and processes may have kept it from running, and no session is the cause of that. So the result is
        at most the processor time that the thread has used since this method was called last.
        """
        looked_ns, self._looked_ns = self._looked_ns, self._clock.thread_time_ns()
        return min(self._clock.monotonic_ns() - began_ns, self._looked_ns - looked_ns)

    def end_turn(self) -> None:
        """Notes that a turn of the event loop has ended."""
        self._costly_ns = 0
        self._looked_ns = self._clock.thread_time_ns()

    def begin(self, session: Session, items: Items, arrival: Arrival) -> bool:
        """Applies a frame for one time slice, if there is time. Returns whether the whole frame is applied.

        Raises as `apply` does.
        """
        assert session not in self._rests, "a session's frames are applied one after another"
        if session.may_go_on and self.has_time and not self._ready:
            self._apply_slice(session, items, arrival, arrival.now_ns)
        else:
            self.charge(session, self.used_ns(arrival.now_ns))  # what it took to parse
        if not items:
            return True
        self._rests[session] = _Rest(items, arrival, self._loop.create_future())
        self._wait_for_turn(session)
        return False

    def unapplied(self, session: Session) -> Unapplied | None:
        """Returns what `outcome_of` waits for, if something of the session's frame is left.

        `outcome_of` raises the error that a later turn finds in the frame; the session has then ended.
        """
        rest = self._rests.get(session)
        return None if rest is None else rest.applied

    def wrote(self, session: Session) -> None:
        """Notes that the device has written an upload of the session."""
        if session in self._rests:
            self._wait_for_turn(session)

    def drop(self, session: Session) -> None:
        """Drops the rest of the frame of a session that has ended, and its account."""
        rest = self._rests.get(session)
        if rest is not None:
            rest.items.drop()
            self._end(session)
        self._alone_ns.pop(session, None)
        self._accounts.drop(session)

    def _charge_alone(self) -> None:
        """Charges the time that was used while nobody waited, before somebody does.

        The clock goes on with those who have used it. Else they would now wait for all of that time.
        """
        for session, time_ns in self._alone_ns.items():
            self._accounts.charge(session, time_ns)
            self._accounts.serve(session)
        self._alone_ns.clear()

    def _wait_for_turn(self, session: Session) -> None:
        if session.may_go_on and session not in self._ready:
            self._charge_alone()
            self._ready.add(session)
            self._accounts.note_work(session)
            self._turn_soon()

    def _turn_soon(self) -> None:
        if self._ready and not self._is_turn_due:
            self._is_turn_due = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        """Applies frames until one is not finished in its slice, or the time of a turn is over."""
        self._is_turn_due = False
        ends_ns = self._clock.monotonic_ns() + self.turn_ns
        while self._ready:
            with closing(self._accounts.in_order()) as sessions:
                session = next(sessions)
            self._accounts.serve(session)
            self._go_on(session)
            if session in self._ready or self._clock.monotonic_ns() >= ends_ns:
                break
        self._turn_soon()

    def _go_on(self, session: Session) -> None:
        """Applies a slice of the rest of a session's frame."""
        items, arrival, applied = self._rests[session]
        try:
            self._apply_slice(session, items, arrival, self._clock.monotonic_ns())
        except CaseError as error:
            applied.set_result(error)
            self._give_up(session, error.case.name)
        except Exception as error:  # noqa: BLE001 - whoever waits for the frame raises it
            applied.set_exception(error)
            self._give_up(session, "server_fault")
        else:
            if not items and session in self._rests:
                self._end(session)
            elif not session.may_go_on:
                self._leave(session)

    def _end(self, session: Session) -> None:
        self._leave(session)
        applied = self._rests.pop(session).applied
        if not applied.done():
            applied.set_result(None)

    def _leave(self, session: Session) -> None:
        if session in self._ready:
            self._ready.remove(session)
            self._accounts.note_idle(session)

    def _apply_slice(self, session: Session, items: Items, arrival: Arrival, began_ns: int) -> None:
        session.heard_at_ns = began_ns  # a client whose frame is being applied is not quiet
        left = self._apply(session, _until(items, began_ns + self.slice_ns, self._clock), arrival, began_ns)
        if left is not None:
            items.put_back(left)


def _until(items: Items, ends_ns: int, clock: Clock) -> Iterator[Item]:
    """Takes items until the time `ends_ns`, and takes at least one item."""
    while items:
        yield items.take()
        if items and clock.monotonic_ns() >= ends_ns:
            return
