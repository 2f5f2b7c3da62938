"""Keeps page-locked host memory for reuse: pages that writes pass through, and areas in which uploads are gathered.

The device copies from such memory by itself while the host goes on. Page-locking memory takes milliseconds, during
which the caller waits. So all of this memory is allocated at start, and an upload that finds no area uses ordinary
memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import cupy
from cupy.cuda import runtime

from fusewire_kernels.devices.cuda_driver import OUT_OF_MEMORY, CudaFence
from fusewire_protos.errors import ConfigurationError

PAGE_BYTES = 1 << 18
AREA_BYTES = 1 << 26  # a larger upload is gathered in ordinary memory, and so is one below LEAST_BYTES
LEAST_BYTES = 1 << 20

_PAGES = 64
_AREAS = 2


@dataclass(eq=False)
class Page:
    """Page-locked memory. While its fence is not reached, the device copies from it."""

    address: int
    view: memoryview
    fence: CudaFence | None = None

    @property
    def has_arrived(self) -> bool:
        return self.fence is None or self.fence.is_reached()


class Lent:
    """An area that belongs to one upload for as long as this object lives."""

    def __init__(self, page: Page, areas: deque[Page]) -> None:
        self.page = page
        self._areas = areas

    def __del__(self) -> None:
        self._areas.append(self.page)


class Areas:
    """Lends areas. Any thread: a borrower takes an area out of a deque, and it returns to the end of the deque."""

    def __init__(self) -> None:
        """Allocates the areas, or fewer if the host has no memory for all."""
        self._free: deque[Page] = deque()
        with suppress(MemoryError):
            while len(self._free) < _AREAS:
                self._free.append(_page(AREA_BYTES))

    def lend(self, size_bytes: int) -> Lent | None:
        """Lends an area for an upload of this size. Returns None for other sizes, or if all areas are in use."""
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


def page_ring() -> Iterator[Page]:
    """Returns an endless iterator over the pages in turn. Raises ConfigurationError."""
    try:
        return cycle([_page(PAGE_BYTES) for _ in range(_PAGES)])
    except MemoryError as error:
        raise ConfigurationError(f"no CUDA device can be used: {error}") from None


def allocate(size_bytes: int) -> Any:
    """Allocates page-locked memory, as CuPy's pointer. Raises MemoryError."""
    try:
        return cupy.cuda.alloc_pinned_memory(size_bytes)
    except runtime.CUDARuntimeError as error:
        if error.status != OUT_OF_MEMORY:
            raise
        raise MemoryError(f"the host has no memory for {size_bytes} page-locked bytes") from None


def _page(size_bytes: int) -> Page:
    memory = allocate(size_bytes)
    return Page(memory.ptr, memoryview(memory).cast("B"))
