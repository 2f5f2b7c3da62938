"""Data share pages, and a page is written again only once the device has copied from it."""

from __future__ import annotations

import pytest

from fusewire_kernels.devices.page_ring import Page, PageRing

PAGE_BYTES = 256


class CountedFence:
    """A fence that counts how often somebody waits for it."""

    def __init__(self) -> None:
        self.waits = 0

    def is_reached(self) -> bool:
        return self.waits > 0

    def wait(self) -> None:
        self.waits += 1


class Ring:
    """A ring of pages at addresses 1,000, 2,000 and so on, and the fences that it has asked for."""

    def __init__(self, pages: int) -> None:
        self.pages = [Page(1000 * number, memoryview(bytearray(PAGE_BYTES))) for number in range(1, pages + 1)]
        self.fences: list[CountedFence] = []
        self.ring = PageRing(self.pages, self._fence)

    def put(self, size_bytes: int, byte: int = 1) -> int:
        return self.ring.put(memoryview(bytes([byte]) * size_bytes))

    def _fence(self) -> CountedFence:
        self.fences.append(CountedFence())
        return self.fences[-1]


def test_small_data_share_a_page_at_aligned_places_without_a_fence() -> None:
    ring = Ring(2)
    assert [ring.put(size_bytes) for size_bytes in (1, 64, 65)] == [1000, 1064, 1128]
    assert not ring.fences
    assert bytes(ring.pages[0].view[126:200]) == bytes([1] * 2 + [1] * 65 + [0] * 7)


def test_data_that_do_not_fit_go_to_the_next_page_behind_a_fence_of_the_page_before() -> None:
    ring = Ring(2)
    assert [ring.put(200), ring.put(100), ring.put(100)] == [1000, 2000, 2128]
    assert [page.fence for page in ring.pages] == [ring.fences[0], None]
    assert ring.fences[0].waits == 0


@pytest.mark.parametrize("pages", [1, 2, 3])
def test_a_page_is_written_again_once_its_fence_is_reached(pages: int) -> None:
    ring = Ring(pages)
    for byte in range(pages):
        ring.put(PAGE_BYTES, byte)
    assert all(not fence.waits for fence in ring.fences)
    assert ring.put(PAGE_BYTES, 77) == 1000
    assert [fence.waits for fence in ring.fences] == [1] + [0] * (pages - 1)
    assert bytes(ring.pages[0].view) == bytes([77]) * PAGE_BYTES


def test_no_data_and_a_whole_page_have_a_place() -> None:
    ring = Ring(2)
    assert [ring.put(0), ring.put(PAGE_BYTES), ring.put(0), ring.put(1)] == [1000, 1000, 1256, 2000]
