"""Gives back what ended sessions held, some values in each turn of the loop, so that others need not wait."""

from __future__ import annotations

import asyncio
from itertools import islice

from fusewire_server.device.orders import Release
from fusewire_server.engine.device_orders import DeviceOrders
from fusewire_server.sessions.intake import MOST_KILLED
from fusewire_server.sessions.session import Session, Value
from fusewire_server.sessions.values import let_die


class EndedSessions:
    """Owned by the loop thread, but for `releases`."""

    def __init__(self, orders: DeviceOrders) -> None:
        self._orders = orders
        self._loop = asyncio.get_running_loop()
        self._values: dict[Session, dict[int, Value]] = {}  # that are still held, by handle

    def __bool__(self) -> bool:
        """Whether anything is still held."""
        return bool(self._values)

    def add(self, session: Session, values: dict[int, Value]) -> None:
        """A session has ended, and held these values."""
        self._values[session] = values
        self._give_back(session)

    def releases(self) -> list[Release]:
        """Of all that is still held. Any thread, once the loop gives nothing back any more."""
        return [Release(frozenset((session,)), tuple(values.values())) for session, values in self._values.items()]

    def _give_back(self, session: Session) -> None:
        """Of the session's values the oldest go back; the others do in later turns.

        A value leaves the table only when its release has been ordered, because `releases` looks there.
        """
        values = self._values[session]
        piece = tuple(islice(values.values(), MOST_KILLED))
        self._orders.add_release([session], piece)
        self._orders.hand_over()
        let_die(values, piece)
        if values:
            self._loop.call_soon(self._give_back, session)
        else:
            del self._values[session]
