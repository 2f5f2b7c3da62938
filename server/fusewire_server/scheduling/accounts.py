"""Keeps the time that tenants, and the sessions of each tenant, have used, and orders them by it. Pure.

There are two kinds of time, each with accounts of its own: that of the device and that of the engine thread. When a
tenant or session has work again, its account (the time that it has used) is raised to at least the account of the
tenant or session served last, so that nobody saves up time by being idle. (Goyal, Vin, Cheng: Start-time Fair Queuing,
1996.)
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Generator, Hashable
from contextlib import closing
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Generic, TypeVar, cast

from fusewire_server.scheduling.turns import Owner

_MOST_LEAD_NS = 1_000_000_000
_SPARE_ITEMS = 64  # of a heap, before items that are out of date are dropped


OwnerT = TypeVar("OwnerT", bound=Owner)


class TenantAccounts(Generic[OwnerT]):
    """The time that tenants have used, and that the owners of each tenant have used.

    A tenant with many owners gets no more time than a tenant with one. A tenant has work as long as one of its owners
    has. Its account stays.
    """

    def __init__(self) -> None:
        self._tenants = Accounts()
        self._with_work: Counter[str] = Counter()  # tenant -> number of its owners that have work
        self._owners: defaultdict[str, Accounts] = defaultdict(Accounts)

    def open(self, owner: OwnerT) -> None:
        """Opens the account of an owner that has no work."""
        self.note_work(owner)
        self.note_idle(owner)

    def note_work(self, owner: OwnerT) -> None:
        """Notes that an owner that had no work has work."""
        tenant = owner.tenant
        self._with_work[tenant] += 1
        if self._with_work[tenant] == 1:
            self._tenants.note_work(tenant)
        self._owners[tenant].note_work(owner)

    def note_idle(self, owner: OwnerT) -> None:
        """Notes that an owner that had work has none."""
        tenant = owner.tenant
        self._owners[tenant].note_idle(owner)
        self._with_work[tenant] -= 1
        if not self._with_work[tenant]:
            self._tenants.note_idle(tenant)

    def drop(self, owner: OwnerT) -> None:
        """Forgets an owner that has no work and will have none."""
        self._owners[owner.tenant].drop(owner)

    def charge(self, owner: OwnerT, time_ns: int) -> None:
        """Adds time to the accounts of an owner and its tenant. A negative amount corrects an estimate."""
        self._tenants.charge(owner.tenant, time_ns)
        self._owners[owner.tenant].charge(owner, time_ns)

    def serve(self, owner: OwnerT) -> None:
        """Advances the clocks of tenants and owners to the accounts of the owner that is served, if it has any."""
        self._tenants.serve(owner.tenant)
        self._owners[owner.tenant].serve(owner)

    def in_order(self) -> Generator[OwnerT, None, None]:
        """Yields the owners that have work: those of the tenant with the least time first, and of these the least one.

        The caller must close the generator before any account changes.
        """
        with closing(self._tenants.in_order()) as tenants:
            for tenant in tenants:
                with closing(self._owners[cast("str", tenant)].in_order()) as owners:
                    for owner in owners:
                        yield cast("OwnerT", owner)

    def rank(self, owner: OwnerT) -> tuple[int, int]:
        """Returns the time that the owner's tenant has used, and the owner itself: who has less comes first."""
        return self._tenants.used_ns[owner.tenant], self._owners[owner.tenant].used_ns[owner]

    def lead_ns(self, owner: OwnerT, other: OwnerT) -> int:
        """Returns how much more time an owner has used than another: if their tenants differ, their tenants."""
        tenant_ns, own_ns = self.rank(owner)
        others_tenant_ns, others_own_ns = self.rank(other)
        return own_ns - others_own_ns if owner.tenant == other.tenant else tenant_ns - others_tenant_ns

    def bound_lead(self, owner: OwnerT, chosen: OwnerT, time_ns: int) -> None:
        """Takes back a part of the time with which an owner joined another that was chosen (see `Accounts`)."""
        self._owners[owner.tenant].bound_lead(owner, time_ns)
        if owner.tenant != chosen.tenant:
            self._tenants.bound_lead(owner.tenant, time_ns)


class Accounts:
    """The time that each key (a tenant, or a session of a tenant) has used, on a clock that all keys share.

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

    def note_work(self, key: Hashable) -> None:
        """Notes that a key has work, and brings its account up to the shared clock."""
        self.used_ns[key] = max(self.used_ns.get(key, 0), self.served_at_ns)
        self._waiting.add(key)
        self._changed[key] = None

    def note_idle(self, key: Hashable) -> None:
        """Notes that a key has no work. Its account stays."""
        self._waiting.discard(key)

    def serve(self, key: Hashable) -> None:
        """Advances the shared clock to the account of the key that is served."""
        self.served_at_ns = max(self.served_at_ns, self.used_ns.get(key, 0))

    def charge(self, key: Hashable, time_ns: int) -> None:
        """Adds time to an account, if there is one. A negative amount corrects an estimate."""
        if key in self.used_ns:
            self.used_ns[key] += time_ns
            self._changed[key] = None

    def bound_lead(self, key: Hashable, time_ns: int) -> None:
        """Takes back of the added time `time_ns` what leads a key by more than `_MOST_LEAD_NS` over the clock.

        The key has joined a submission of others, who did not wait for that. It shall not have to wait for all of that
        time once they run something else.
        """
        lead_ns = self.used_ns.get(key, 0) - self.served_at_ns
        if lead_ns > _MOST_LEAD_NS:
            self.charge(key, -min(lead_ns - _MOST_LEAD_NS, time_ns))

    def drop(self, key: Hashable) -> None:
        self.note_idle(key)
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
