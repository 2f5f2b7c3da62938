"""Applies the rest of a long frame in time slices, so that the event loop does other work in between.

A frame counts as applied after its first time slice, and then its client does not send the frame again. So the rest of
the frame is applied even if the frame's stream breaks. The server reads the session's next frame only after the rest
has been applied. The rest waits while the device still has to write too many uploads of the session. The loop thread
owns this state.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol

from fusewire_protos.errors import CaseError
from fusewire_server.sessions.frame import Arrival, Item
from fusewire_server.sessions.session import Session

SLICE_NS = 300_000

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
    """The items of a frame that have not been applied, and the task that applies them."""

    items: Items
    wrote: asyncio.Event  # set when an upload has been written or the session has ended
    task: asyncio.Task[CaseError | None]


class Backlog:
    """Frames that have been applied in part: at most one frame for each session.

    `apply` applies items; its last argument is the time at which it began. `apply` stops at an item that it cannot
    finish in one step, and returns the rest of that item. `give_up` ends a session if the rest of its frame cannot be
    applied; its second argument is the name of the case.
    """

    def __init__(self, apply: Apply, give_up: Callable[[Session, str], None]) -> None:
        self.slice_ns = SLICE_NS
        self._apply = apply
        self._give_up = give_up
        self._rests: dict[bytes, _Rest] = {}  # by session

    def begin(self, session: Session, items: Items, arrival: Arrival) -> bool:
        """Applies a frame for one time slice. Returns whether the whole frame is applied. Raises as `apply` does."""
        assert session.session_id not in self._rests, "a session's frames are applied one after another"
        if session.may_go_on:
            self._apply_slice(session, items, arrival, arrival.now_ns)
        if not items:
            return True
        wrote = asyncio.Event()
        task = asyncio.create_task(self._go_on(session, items, arrival, wrote), name="backlog")
        self._rests[session.session_id] = _Rest(items, wrote, task)
        return False

    async def applied(self, session: Session) -> None:
        """Waits until nothing of the session's frame is left.

        If `apply` raised an error, raises the same error; the session has then ended.
        """
        rest = self._rests.get(session.session_id)
        error = await asyncio.shield(rest.task) if rest is not None else None
        if error is not None:
            raise error

    def wrote(self, session: Session) -> None:
        """Notes that the device has written an upload of the session."""
        rest = self._rests.get(session.session_id)
        if rest is not None:
            rest.wrote.set()

    def drop(self, session: Session) -> None:
        """Drops the rest of the frame of a session that has ended."""
        rest = self._rests.get(session.session_id)
        if rest is not None:
            rest.items.drop()
            rest.wrote.set()

    async def _go_on(self, session: Session, items: Items, arrival: Arrival, wrote: asyncio.Event) -> CaseError | None:
        try:
            while items:
                if session.may_go_on:
                    self._apply_slice(session, items, arrival, time.monotonic_ns())
                    await asyncio.sleep(0)
                else:
                    wrote.clear()
                    await wrote.wait()
        except CaseError as error:
            self._give_up(session, error.case.name)
            return error
        except Exception:
            self._give_up(session, "server_fault")
            raise
        finally:
            del self._rests[session.session_id]
        return None

    def _apply_slice(self, session: Session, items: Items, arrival: Arrival, began_ns: int) -> None:
        session.heard_at_ns = began_ns  # a client whose frame is being applied is not quiet
        left = self._apply(session, _until(items, began_ns + self.slice_ns), arrival, began_ns)
        if left is not None:
            items.put_back(left)


def _until(items: Items, ends_ns: int) -> Iterator[Item]:
    """Takes items until the time `ends_ns`, and takes at least one item."""
    while items:
        yield items.take()
        if items and time.monotonic_ns() >= ends_ns:
            return
