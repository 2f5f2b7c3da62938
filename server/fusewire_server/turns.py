"""Whose request is next: those who ask take turns, and each has its own served in order. Pure."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class Turns(Generic[T]):
    """Queues by owner. An item may stand in several of them; whoever takes one it has had before drops it."""

    def __init__(self) -> None:
        self._queues: OrderedDict[Hashable, deque[T]] = OrderedDict()  # none is empty; the first is next

    def add(self, owner: Hashable, item: T) -> None:
        self._queues.setdefault(owner, deque()).append(item)

    def waiting(self, owner: Hashable) -> int:
        """How many items stand in the owner's queue."""
        return len(self._queues.get(owner, ()))

    def take(self) -> T | None:
        """The next item, None if there is none. Its owner's turn is over."""
        if not self._queues:
            return None
        owner, queue = self._queues.popitem(last=False)
        item = queue.popleft()
        if queue:
            self._queues[owner] = queue
        return item

    def leave(self, owner: Hashable) -> Sequence[T]:
        """Takes an owner out, with all that stood in its queue."""
        return self._queues.pop(owner, deque())
