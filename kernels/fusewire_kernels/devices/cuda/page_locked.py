"""Keeps page-locked host memory for reuse. Writes pass through a ring of pages. Large values are gathered in areas.

The device copies from and to page-locked memory by itself while the host goes on. To page-lock memory takes
milliseconds, and the caller waits meanwhile. So all pages and areas are allocated at start, and an upload or a read
that finds no free area uses ordinary memory.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import Any

import cupy
from cupy.cuda import runtime

from fusewire_kernels.devices.cuda.driver import OUT_OF_MEMORY
from fusewire_kernels.devices.page_ring import Page
from fusewire_protos.errors import ConfigurationError

PAGE_BYTES = 1 << 18
AREA_BYTES = 1 << 26  # the size of an area; a larger value is gathered in ordinary memory
LEAST_BYTES = 1 << 20  # a smaller value is gathered in ordinary memory

_PAGES = 64
_AREAS = 2


class Lent:
    """An area that is lent to one value. The area is free again when this object is deleted.

    An array that NumPy makes of this object shares the area's memory, and holds the object.
    """

    def __init__(self, page: Page, areas: deque[Page]) -> None:
        self.page = page
        self._areas = areas
        self.__array_interface__ = {
            "version": 3,
            "shape": (page.view.nbytes,),
            "typestr": "|u1",
            "data": (page.address, False),
        }

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
        """Lends an area for a value. Returns None if areas are not for values of this size or if all are in use."""
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


def pages() -> list[Page]:
    """Allocates the pages of a ring. Raises ConfigurationError if the host has no memory for them."""
    try:
        return [_page(PAGE_BYTES) for _ in range(_PAGES)]
    except MemoryError as error:
        raise ConfigurationError(f"no CUDA device can be used: {error}") from None


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
