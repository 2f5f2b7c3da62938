"""Keeps page-locked host memory for reuse. Writes pass through a ring of pages. Large uploads are gathered in areas.

The device copies from page-locked memory by itself while the host goes on. To page-lock memory takes milliseconds, and
the caller waits meanwhile. So all pages and areas are allocated at start, and an upload that finds no free area uses
ordinary memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import cupy
from cupy.cuda import runtime

from fusewire_kernels.devices.cuda_driver import OUT_OF_MEMORY, CudaFence
from fusewire_protos.errors import ConfigurationError

PAGE_BYTES = 1 << 18
AREA_BYTES = 1 << 26  # the size of an area; a larger upload is gathered in ordinary memory
LEAST_BYTES = 1 << 20  # a smaller upload is gathered in ordinary memory

_PAGES = 64
_AREAS = 2
_PLACE_BYTES = 64  # a place in a page begins at a multiple of it


@dataclass(eq=False)
class Page:
    """Page-locked memory. The device may copy from the memory until the fence is reached."""

    address: int
    view: memoryview
    fence: CudaFence | None = None

    @property
    def has_arrived(self) -> bool:
        return self.fence is None or self.fence.is_reached()


class Lent:
    """An area that is lent to one upload. The area is free again when this object is deleted."""

    def __init__(self, page: Page, areas: deque[Page]) -> None:
        self.page = page
        self._areas = areas

    def __del__(self) -> None:
        self._areas.append(self.page)


class Areas:
    """Lends areas. Any thread may borrow an area.

    A borrower takes an area from the front of a deque. An area that is given back goes to the end of the deque.
    """

    def __init__(self) -> None:
        """Allocates as many of the areas as the host has memory for."""
        self._free: deque[Page] = deque()
        with suppress(MemoryError):
            while len(self._free) < _AREAS:
                self._free.append(_page(AREA_BYTES))

    def lend(self, size_bytes: int) -> Lent | None:
        """Lends an area for an upload. Returns None if areas are not for uploads of this size or if all are in use."""
        if not LEAST_BYTES <= size_bytes <= AREA_BYTES:
            return None
        for _ in range(_AREAS):
            try:
                page = self._free.popleft()
            except IndexError:
                return None
            if page.has_arrived:
                return Lent(page, self._free)
            self._free.append(page)
        return None


class PageRing:
    """Pages that pass data to the device in turn. Used by the thread that queues the copies.

    Many small pieces of data share a page. `fence` returns a fence behind all work that is queued. Raises
    ConfigurationError if the host has no memory for the pages.
    """

    def __init__(self, fence: Callable[[], CudaFence]) -> None:
        self._fence = fence
        try:
            self._pages = deque(_page(PAGE_BYTES) for _ in range(_PAGES))
        except MemoryError as error:
            raise ConfigurationError(f"no CUDA device can be used: {error}") from None
        self._used_bytes = 0

    def put(self, data: memoryview) -> int:
        """Returns the address of a copy of the data, PAGE_BYTES at most. The device may read it until the next fence.

        Waits for the device if the whole ring is in use.
        """
        begin, end = self._used_bytes, self._used_bytes + data.nbytes
        if end > PAGE_BYTES:
            self._turn()
            begin, end = 0, data.nbytes
        page = self._pages[0]
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


def allocate(size_bytes: int) -> Any:
    """Allocates page-locked memory. Returns CuPy's pointer. Raises MemoryError."""
    try:
        return cupy.cuda.alloc_pinned_memory(size_bytes)
    except runtime.CUDARuntimeError as error:
        if error.status != OUT_OF_MEMORY:
            raise
        raise MemoryError(f"the host has no memory for {size_bytes} page-locked bytes") from None


def _page(size_bytes: int) -> Page:
    memory = allocate(size_bytes)
    return Page(memory.ptr, memoryview(memory).cast("B"))
