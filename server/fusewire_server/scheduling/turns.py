"""Serves owners round-robin, and keeps the requests of each owner in order. Pure."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")


class Owner(Hashable, Protocol):
    """An owner of requests, for example a session. Every owner belongs to a tenant."""

    @property
    def tenant(self) -> str: ...


class Turns(Generic[T]):
    """Queues of items by owner, served round-robin.

    An item may stand in the queues of several owners. If `is_settled` is true of an item when its turn comes, the item
    is dropped and the owner's next item takes the turn.
    """

    def __init__(self, is_settled: Callable[[T], bool] = lambda _: False) -> None:
        self._is_settled = is_settled
        self._queues: OrderedDict[Hashable, deque[T]] = OrderedDict()  # no queue is empty; the first has the next turn

    def add(self, owner: Hashable, item: T) -> None:
        self._queues.setdefault(owner, deque()).append(item)

    def waiting(self, owner: Hashable) -> int:
        """Returns the number of items in the owner's queue."""
        return len(self._queues.get(owner, ()))

    def take(self) -> T | None:
        """Removes and returns the next item, or None if there is none. Ends the turn of the item's owner."""
        while self._queues:
            owner, queue = self._queues.popitem(last=False)
            while queue and self._is_settled(queue[0]):
                queue.popleft()
            if queue:
                return self._take_of(owner, queue)
        return None

    def _take_of(self, owner: Hashable, queue: deque[T]) -> T:
        item = queue.popleft()
        if queue:
            self._queues[owner] = queue
        return item

    @property
    def is_empty(self) -> bool:
        return not self._queues

    def remove_owner(self, owner: Hashable) -> Sequence[T]:
        """Removes an owner. Returns the items of its queue."""
        return self._queues.pop(owner, deque())


class TenantTurns(Generic[T]):
    """Serves tenants round-robin, and the owners of each tenant round-robin in that tenant's turns.

    A tenant with many owners gets no more turns than a tenant with one. Items that may wait come behind all other items
    of their tenant.
    """

    def __init__(self, is_settled: Callable[[T], bool]) -> None:
        self._is_settled = is_settled
        # Each tenant has an item in some queue: of items that do not wait, or of those that may wait. The first tenant
        # has the next turn.
        self._tenants: OrderedDict[str, tuple[Turns[T], Turns[T]]] = OrderedDict()

    def add(self, owner: Owner, item: T, *, may_wait: bool = False) -> None:
        both = self._tenants.setdefault(owner.tenant, (Turns(self._is_settled), Turns(self._is_settled)))
        both[may_wait].add(owner, item)

    def waiting(self, owner: Owner) -> int:
        """Returns the number of items in the owner's queues."""
        return sum([turns.waiting(owner) for turns in self._tenants.get(owner.tenant, ())])

    def take(self) -> T | None:
        """Removes and returns the next item, or None if there is none. Ends the turns of its owner and its tenant."""
        while self._tenants:
            tenant, both = self._tenants.popitem(last=False)
            first, later = both
            item = first.take()
            if item is None:
                item = later.take()
            if not (first.is_empty and later.is_empty):
                self._tenants[tenant] = both
            if item is not None:
                return item
        return None

    def remove_owner(self, owner: Owner) -> Sequence[T]:
        """Removes an owner. Returns the items of its queues."""
        both = self._tenants.get(owner.tenant, ())
        items = [item for turns in both for item in turns.remove_owner(owner)]
        if both and all(turns.is_empty for turns in both):
            del self._tenants[owner.tenant]
        return items
