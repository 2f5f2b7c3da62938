"""Gives data on their way to a device a place in a ring of pages, from which the device copies by itself.

Waits for the device if the whole ring is in use.
"""

from __future__ import annotations

from builtins import memoryview  # noqa: A004 - mypyc looks for types of fields in the module
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fusewire_kernels.devices.base import Fence

_PLACE_BYTES = 64  # a place in a page begins at a multiple of it


@dataclass(eq=False)
class Page:
    """Memory of the host. The device may copy from the memory until the fence is reached."""

    address: int
    view: memoryview
    fence: Fence | None = None

    @property
    def has_arrived(self) -> bool:
        return self.fence is None or self.fence.is_reached()


class PageRing:
    """Pages of one size, which are used in turn. Many small pieces of data share a page.

    Used by the thread that queues the copies. `fence` returns a fence behind all copies that are queued.
    """

    def __init__(self, pages: Iterable[Page], fence: Callable[[], Fence]) -> None:
        self._pages = deque(pages)
        self._fence = fence
        self._used_bytes = 0  # of the first page

    def put(self, data: memoryview) -> int:
        """Returns the address of a copy of the data, at most a page. The caller queues the device's copy at once.

        Waits for the device if the whole ring is in use.
        """
        begin = self._used_bytes
        if begin + data.nbytes > self._pages[0].view.nbytes:
            self._turn()
            begin = 0
        page, end = self._pages[0], begin + data.nbytes
        page.view[begin:end] = data
        self._used_bytes = -(-end // _PLACE_BYTES) * _PLACE_BYTES
        return page.address + begin

    def _turn(self) -> None:
        """Goes on to the next page. All copies from the page before are queued by now."""
        self._pages[0].fence = self._fence()
        self._pages.rotate(-1)
        fence = self._pages[0].fence
        if fence is not None:
            fence.wait()
