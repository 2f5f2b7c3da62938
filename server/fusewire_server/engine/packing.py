"""Packs values of sessions that hold very many: some in each turn of the event loop, so that others need not wait."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain, islice
from operator import attrgetter

from fusewire_server.engine.clock import Clock
from fusewire_server.sessions.session import Row, Session, Value
from fusewire_server.sessions.values import pack

# A session's values that stay objects, which are faster. Beyond them, those of completed rows are packed.
MOST_OBJECTS = 4096
MOST_PACKED_AT_ONCE = 256


class Packing:
    """The rows whose values may be packed. The engine thread owns this state. `charge` is as in `Submissions`."""

    def __init__(self, clock: Clock, charge: Callable[..., None]) -> None:
        self._clock = clock
        self._charge = charge
        self._left: deque[tuple[Session, Iterator[Value]]] = deque()

    def add(self, row: Row) -> None:
        """Packs values of a completed row later, if its session holds many."""
        if len(row.session.values) <= MOST_OBJECTS:
            return
        if not self._left:
            asyncio.get_running_loop().call_soon(self._go_on)
        # In the order of handles, in which they are packed faster.
        self._left.append((row.session, chain(sorted(row.outputs, key=attrgetter("handle")), row.inputs)))

    def _go_on(self) -> None:
        began_ns = self._clock.monotonic_ns()
        session, values = self._left[0]
        many = len(session.values) > MOST_OBJECTS
        piece = [*islice(values, MOST_PACKED_AT_ONCE)] if many else []
        for value in piece:
            pack(session, value)
        if len(piece) < MOST_PACKED_AT_ONCE:
            self._left.popleft()
        self._charge(began_ns, session)
        if self._left:
            asyncio.get_running_loop().call_soon(self._go_on)
