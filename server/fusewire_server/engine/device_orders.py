"""Collects the orders of one turn of the event loop, so that the device thread wakes up once for all of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from fusewire_server.device.orders import Order, Release, Write
from fusewire_server.sessions.session import Session, Value


class DeviceOrders:
    """The orders of one turn of the event loop. The engine thread owns this state.

    The argument `hand_over` gives orders to the device thread, in their order. `end_turn_soon` has the method
    `hand_over` called at the end of this turn.
    """

    def __init__(self, hand_over: Callable[..., None], end_turn_soon: Callable[[], None]) -> None:
        self._hand_over = hand_over
        self._end_turn_soon = end_turn_soon
        self._orders: list[Order] = []

    def add(self, order: Order) -> None:
        """Adds an order to the orders of this turn of the loop."""
        if not self._orders:
            self._end_turn_soon()
        self._orders.append(order)

    def add_write(self, write: Write) -> None:
        """Adds a write. Counts the write among its session's writes until the write is done."""
        write.session.writes += 1
        self.add(write)

    def add_release(self, sessions: Iterable[Session], values: Collection[Value]) -> None:
        """Adds a release of these values of these sessions. Adds nothing if there are no values."""
        if values:
            self.add(Release(frozenset(sessions), tuple(values)))

    def hand_over(self) -> None:
        """Gives the device thread the orders collected so far."""
        if self._orders:
            self._hand_over(*self.take())

    def take(self) -> list[Order]:
        """Removes and returns the orders collected so far."""
        taken, self._orders = self._orders, []
        return taken
