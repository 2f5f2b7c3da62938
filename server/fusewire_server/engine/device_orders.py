"""Collects the orders of one turn of the loop, so that handing them over wakes the device thread once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable

from fusewire_server.device.orders import Order, Release, Write
from fusewire_server.sessions.session import Session, Value


class DeviceOrders:
    """Owned by the loop thread. `hand_over` is called with the orders of a turn, in order."""

    def __init__(self, hand_over: Callable[..., None]) -> None:
        self._hand_over = hand_over
        self._loop = asyncio.get_running_loop()
        self._orders: list[Order] = []

    def add(self, order: Order) -> None:
        """Gives an order, with all others of this turn of the loop."""
        if not self._orders:
            self._loop.call_soon(self.hand_over)  # for those turns that do not do so themselves
        self._orders.append(order)

    def add_write(self, write: Write) -> None:
        """Has a value filled; counts among its session's writes until that is done."""
        write.session.writes += 1
        self.add(write)

    def add_release(self, sessions: Iterable[Session], values: Collection[Value]) -> None:
        """Has the memory given back that values of these sessions took, if there are any."""
        if values:
            self.add(Release(frozenset(sessions), tuple(values)))

    def hand_over(self) -> None:
        """Gives the device thread what has been collected."""
        if self._orders:
            self._hand_over(*self.take())

    def take(self) -> list[Order]:
        """What has been collected and not been handed over."""
        taken, self._orders = self._orders, []
        return taken
