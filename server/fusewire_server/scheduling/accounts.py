"""Keeps the device time that tenants, or the sessions of a tenant, have used, and orders them by it. Pure.

When a tenant or session has work again, its account (the device time that it has used) is raised to at least the
account of the tenant or session served last, so that nobody saves up device time by being idle. (Goyal, Vin, Cheng:
Start-time Fair Queuing, 1996.)
"""

from __future__ import annotations

from collections.abc import Generator, Hashable
from heapq import heapify, heappop, heappush
from itertools import count

_MOST_LEAD_NS = 1_000_000_000
_SPARE_ITEMS = 64  # of a heap, before items that are out of date are dropped


class Accounts:
    """The device time that each key (a tenant, or a session of a tenant) has used, on a clock that all keys share.

    The keys that have work are in a heap. A key whose time has changed gets a new item in the heap when `in_order` is
    called. An older item of the key is dropped when it reaches the top, because it no longer has the key's time, or
    when there are many such items.
    """

    def __init__(self) -> None:
        self.used_ns: dict[Hashable, int] = {}
        self.served_at_ns = 0  # the shared clock: the time used by the account that was served last
        self._waiting: set[Hashable] = set()
        self._changed: dict[Hashable, None] = {}  # keys whose present time is not in the heap
        self._heap: list[tuple[int, int, Hashable]] = []  # time, number of the item, key
        self._items = count()

    def enter(self, key: Hashable) -> None:
        """Notes that a key has work, and brings its account up to the shared clock."""
        self.used_ns[key] = max(self.used_ns.get(key, 0), self.served_at_ns)
        self._waiting.add(key)
        self._changed[key] = None

    def leave(self, key: Hashable) -> None:
        """Notes that a key has no work. Its account stays."""
        self._waiting.discard(key)

    def serve(self, key: Hashable) -> None:
        """Advances the shared clock to the account of the key that is served."""
        self.served_at_ns = max(self.served_at_ns, self.used_ns[key])

    def charge(self, key: Hashable, device_ns: int) -> None:
        """Adds device time. A negative amount corrects an estimate."""
        if key in self.used_ns:
            self.used_ns[key] += device_ns
            self._changed[key] = None

    def bound_lead(self, key: Hashable, device_ns: int) -> None:
        """Takes back of the added time `device_ns` what leads a key by more than `_MOST_LEAD_NS` over the clock.

        The key has joined a submission of others, who did not wait for that. It shall not have to wait for all of that
        time once they run something else.
        """
        lead_ns = self.used_ns.get(key, 0) - self.served_at_ns
        if lead_ns > _MOST_LEAD_NS:
            self.charge(key, -min(lead_ns - _MOST_LEAD_NS, device_ns))

    def drop(self, key: Hashable) -> None:
        self.leave(key)
        self._changed.pop(key, None)
        self.used_ns.pop(key, None)

    def in_order(self) -> Generator[Hashable, None, None]:
        """Yields the keys that have work, the key with the least time first.

        The caller must close the generator before any account changes.
        """
        for key in self._changed:
            if key in self._waiting:
                heappush(self._heap, (self.used_ns[key], next(self._items), key))
        self._changed.clear()
        if len(self._heap) > 2 * len(self._waiting) + _SPARE_ITEMS:
            # One item for each key: a key that is charged nothing has several items of its present time.
            self._heap = [*{item[-1]: item for item in self._heap if self._is_current(item)}.values()]
            heapify(self._heap)
        seen: dict[Hashable, tuple[int, int, Hashable]] = {}
        try:
            while self._heap:
                item = heappop(self._heap)
                _, _, key = item
                if key not in seen and self._is_current(item):
                    seen[key] = item
                    yield key
        finally:
            for item in seen.values():
                heappush(self._heap, item)

    def _is_current(self, item: tuple[int, int, Hashable]) -> bool:
        used_ns, _, key = item
        return key in self._waiting and self.used_ns[key] == used_ns
