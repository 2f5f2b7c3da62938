"""Releases the values of ended sessions: some in each turn of the event loop, so that others need not wait."""

from __future__ import annotations

import asyncio
from itertools import islice

from fusewire_server.device.orders import Release
from fusewire_server.engine.device_orders import DeviceOrders
from fusewire_server.sessions.intake import MOST_FREED_AT_ONCE
from fusewire_server.sessions.session import Session, Value
from fusewire_server.sessions.tables.salted_table import SaltedTable
from fusewire_server.sessions.values import forget_ended, unpacked


class EndedSessions:
    """Values that ended sessions still hold. Every method except `releases` runs on the engine thread."""

    def __init__(self, orders: DeviceOrders) -> None:
        self._orders = orders
        self._loop = asyncio.get_running_loop()
        self._values: dict[Session, SaltedTable[Value]] = {}  # values still held, by handle

    def __bool__(self) -> bool:
        """Tells whether any value is still held."""
        return bool(self._values)

    def add(self, session: Session, values: SaltedTable[Value]) -> None:
        """Takes the values of a session that has ended."""
        is_first = not self._values
        self._values[session] = values
        if is_first:
            self._give_back()

    def releases(self) -> list[Release]:
        """Returns releases of all values still held but packed ones, whose memory goes with the process.

        Runs on any thread, after the engine thread has stopped releasing values.
        """
        return [Release(frozenset((session,)), tuple(values.values())) for session, values in self._values.items()]

    def _give_back(self) -> None:
        """Orders the release of the oldest values of the session that ended first, and of others in later turns.

        A value leaves the table only after its release has been ordered, because `releases` reads the table.
        """
        session, values = next(iter(self._values.items()))
        if not values:
            values.update({packed.handle: unpacked(session, packed) for packed in session.packed.pop_some()})
        piece = [*islice(values.items(), MOST_FREED_AT_ONCE)]
        self._orders.add_release([session], [value for _, value in piece])
        self._orders.hand_over()
        forget_ended(values, piece)
        if not (values or session.packed):
            del self._values[session]
        if self._values:
            self._loop.call_soon(self._give_back)
