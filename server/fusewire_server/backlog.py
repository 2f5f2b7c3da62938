"""What is left of frames that take long to apply: it goes on in slices of time, with turns of the loop between.

A frame counts as applied from its first slice on, and its client does not send it again. So the rest goes on whatever
becomes of the stream that brought it, and whoever reads the session's next frame waits for it. It waits itself while
the device has too many uploads of the session to write. Owned by the loop thread.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from fusewire_protos.errors import CaseError
from fusewire_server.intake import Arrival, Item
from fusewire_server.session import Session

SLICE_NS = 1_000_000

Apply = Callable[[Session, Iterable[Item], Arrival, int], None]


class _Rest(NamedTuple):
    """The items of a frame that have not been applied, and the task that applies them."""

    items: deque[Item]
    wrote: asyncio.Event  # an upload has been written, or the session has ended
    task: asyncio.Task[CaseError | None]


class Backlog:
    """Frames of which something is left, one a session at most.

    `apply` takes items in and is told when that began; `give_up` ends a session whose frame cannot be applied whole.
    """

    def __init__(self, apply: Apply, give_up: Callable[[Session], None]) -> None:
        self.slice_ns = SLICE_NS
        self._apply = apply
        self._give_up = give_up
        self._rests: dict[bytes, _Rest] = {}  # by session

    def begin(self, session: Session, items: deque[Item], arrival: Arrival) -> bool:
        """Applies a frame, or a first slice of it. Whether that was all. Raises what `apply` does."""
        assert session.session_id not in self._rests, "a session's frames are applied one after the other"
        if session.may_go_on:
            self._apply_slice(session, items, arrival, arrival.now_ns)
        if not items:
            return True
        wrote = asyncio.Event()
        task = asyncio.create_task(self._go_on(session, items, arrival, wrote), name="backlog")
        self._rests[session.session_id] = _Rest(items, wrote, task)
        return False

    async def applied(self, session: Session) -> None:
        """Returns when nothing is left. Raises what `apply` raised; the session has ended then."""
        rest = self._rests.get(session.session_id)
        error = await asyncio.shield(rest.task) if rest is not None else None
        if error is not None:
            raise error

    def wrote(self, session: Session) -> None:
        """The device has written an upload."""
        rest = self._rests.get(session.session_id)
        if rest is not None:
            rest.wrote.set()

    def drop(self, session: Session) -> None:
        """The session has ended."""
        rest = self._rests.get(session.session_id)
        if rest is not None:
            rest.items.clear()
            rest.wrote.set()

    async def _go_on(
        self, session: Session, items: deque[Item], arrival: Arrival, wrote: asyncio.Event
    ) -> CaseError | None:
        try:
            while items:
                if session.may_go_on:
                    self._apply_slice(session, items, arrival, time.monotonic_ns())
                    await asyncio.sleep(0)
                else:
                    wrote.clear()
                    await wrote.wait()
        except CaseError as error:
            self._give_up(session)
            return error
        except Exception:
            self._give_up(session)
            raise
        finally:
            del self._rests[session.session_id]
        return None

    def _apply_slice(self, session: Session, items: deque[Item], arrival: Arrival, began_ns: int) -> None:
        self._apply(session, _until(items, began_ns + self.slice_ns), arrival, began_ns)


def _until(items: deque[Item], ends_ns: int) -> Iterator[Item]:
    """Takes items out until then; one at least."""
    while items:
        yield items.popleft()
        if items and time.monotonic_ns() >= ends_ns:
            return
