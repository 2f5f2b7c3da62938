"""Page-locked host memory that is taken again and again: pages that writes pass through, areas that uploads gather in.

The device copies from it by itself while the host goes on. To page-lock memory takes milliseconds, during which whoever
asks stands still: so all of this is had at start, and uploads that find no area gather in ordinary memory.
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
AREA_BYTES = 1 << 26  # an upload of more gathers in ordinary memory, and so does one of little
LEAST_BYTES = 1 << 20

_PAGES = 64
_AREAS = 2


@dataclass(eq=False)
class Page:
    """Page-locked memory, on its way to the device until its fence is reached."""

    address: int
    view: memoryview
    fence: CudaFence | None = None

    @property
    def has_arrived(self) -> bool:
        return self.fence is None or self.fence.is_reached()


class Lent:
    """An area that one upload has for as long as this lives."""

    def __init__(self, page: Page, areas: deque[Page]) -> None:
        self.page = page
        self._areas = areas

    def __del__(self) -> None:
        self._areas.append(self.page)


class Areas:
    """Lends areas. Any thread: each is taken out of a deque by whoever uses it, and comes back to its end."""

    def __init__(self) -> None:
        """Where the host has no room for areas, there are fewer."""
        self._free: deque[Page] = deque()
        with suppress(MemoryError):
            while len(self._free) < _AREAS:
                self._free.append(_page(AREA_BYTES))

    def lend(self, size_bytes: int) -> Lent | None:
        """An area for so much; None if it is too much or too little, or all are in use or on their way."""
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
    """The pages in turn, without end. Raises ConfigurationError."""
    try:
        return cycle([_page(PAGE_BYTES) for _ in range(_PAGES)])
    except MemoryError as error:
        raise ConfigurationError(f"no CUDA device can be used: {error}") from None


def allocate(size_bytes: int) -> Any:
    """Page-locked memory of its own, as CuPy's pointer. Raises MemoryError."""
    try:
        return cupy.cuda.alloc_pinned_memory(size_bytes)
    except runtime.CUDARuntimeError as error:
        if error.status != OUT_OF_MEMORY:
            raise
        raise MemoryError(f"the host has no room for {size_bytes} page-locked bytes") from None


def _page(size_bytes: int) -> Page:
    memory = allocate(size_bytes)
    return Page(memory.ptr, memoryview(memory).cast("B"))
