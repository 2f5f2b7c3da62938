"""Keeps what is no longer needed for as long as the device may still use it. Device thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from fusewire_kernels.devices.base import Fence

T = TypeVar("T")


class Retirement(Generic[T]):
    """Holds retired objects until a fence behind all earlier work is reached. Then drops its references to them."""

    def __init__(self, fence: Callable[[], Fence]) -> None:
        self._fence = fence
        self._retired: deque[tuple[Fence, T]] = deque()

    def retire(self, one: T) -> None:
        """Takes an object that no later work uses."""
        self._retired.append((self._fence(), one))
        self.drop_unused()

    def drop_unused(self) -> None:
        """Drops what the device can no longer use."""
        while self._retired and self._retired[0][0].is_reached():
            self._retired.popleft()
