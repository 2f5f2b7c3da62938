"""Released blocks are given out again, within the limits of a pool. The allocator counts what it has given."""

from __future__ import annotations

from itertools import count

import pytest

from fusewire_kernels.devices.base import Block
from fusewire_kernels.devices.block_pool import BlockPool
from fusewire_protos.errors import OutOfMemory

LIMIT_BYTES = 1 << 20
CACHED_BYTES = 1 << 18
LARGEST_BYTES = 1 << 16


class Allocator:
    """Gives blocks of any size, at addresses of its own. Refuses the next `refusals` requests."""

    def __init__(self) -> None:
        self.sizes_bytes: list[int] = []
        self.freed: list[Block] = []
        self.refusals = 0
        self._addresses = count(0, 64)

    def new_block(self, size_bytes: int) -> Block:
        if self.refusals:
            self.refusals -= 1
            raise OutOfMemory(f"no memory for {size_bytes} bytes")
        self.sizes_bytes.append(size_bytes)
        return Block(next(self._addresses), size_bytes, None)


@pytest.fixture
def allocator() -> Allocator:
    return Allocator()


@pytest.fixture
def pool(allocator: Allocator) -> BlockPool:
    return BlockPool(allocator.new_block, limit_bytes=LIMIT_BYTES, cached_bytes=CACHED_BYTES, unit_bytes=64)


@pytest.fixture
def small_pool(allocator: Allocator) -> BlockPool:
    """Keeps only blocks of up to LARGEST_BYTES."""
    return BlockPool(
        allocator.new_block,
        limit_bytes=LIMIT_BYTES,
        cached_bytes=CACHED_BYTES,
        unit_bytes=512,
        largest_bytes=LARGEST_BYTES,
        free=allocator.freed.append,
    )


@pytest.mark.parametrize("size_bytes", [0, 1, 63, 64, 65, 1000, 4096, 100_001])
def test_a_block_is_at_most_a_quarter_too_large(pool: BlockPool, size_bytes: int) -> None:
    assert size_bytes <= pool.take(size_bytes).size_bytes <= max(64, size_bytes * 1.25 + 64)


@pytest.mark.parametrize("size_bytes", [0, 1, 513, 1000, 4096, 50_001, LARGEST_BYTES])
def test_sizes_are_multiples_of_the_unit(small_pool: BlockPool, size_bytes: int) -> None:
    assert small_pool.take(size_bytes).size_bytes % 512 == 0


def test_a_released_block_is_given_out_again(pool: BlockPool) -> None:
    block = pool.take(1000)
    pool.give_back(block)
    assert pool.kept_bytes == block.size_bytes
    assert pool.take(990) is block
    assert pool.kept_bytes == 0


def test_a_block_in_use_is_not_given_out(pool: BlockPool) -> None:
    assert pool.take(1000) is not pool.take(1000)


def test_the_pool_keeps_no_more_than_its_bound(pool: BlockPool) -> None:
    blocks = [pool.take(1 << 16) for _ in range(8)]
    for block in blocks:
        pool.give_back(block)
    assert pool.kept_bytes == CACHED_BYTES


def test_a_large_block_has_the_size_asked_for_and_is_not_kept(small_pool: BlockPool, allocator: Allocator) -> None:
    block = small_pool.take(LARGEST_BYTES + 1)
    assert block.size_bytes == LARGEST_BYTES + 1
    small_pool.give_back(block)
    assert (small_pool.kept_bytes, allocator.freed) == (0, [block])
    small_pool.take(LARGEST_BYTES + 1)
    assert len(allocator.sizes_bytes) == 2


def test_what_is_no_longer_kept_is_freed_at_once(small_pool: BlockPool, allocator: Allocator) -> None:
    blocks = [small_pool.take(LARGEST_BYTES) for _ in range(CACHED_BYTES // LARGEST_BYTES + 1)]
    for block in blocks:
        small_pool.give_back(block)
    assert allocator.freed == [blocks[-1]]
    small_pool.clear()
    assert set(allocator.freed) == set(blocks)


def test_released_large_blocks_make_room(small_pool: BlockPool) -> None:
    for _ in range(3):
        small_pool.give_back(small_pool.take(LIMIT_BYTES))


def test_blocks_are_counted_by_size(pool: BlockPool) -> None:
    small, _, large = [pool.take(size_bytes) for size_bytes in (64, 64, 1 << 10)]
    pool.give_back(small)
    assert pool.counts() == [(64, 1, 1), (1 << 10, 0, 1)]
    pool.give_back(large)
    assert pool.counts() == [(64, 1, 1), (1 << 10, 1, 0)]


def test_memory_is_bounded_and_the_error_names_the_sizes(pool: BlockPool) -> None:
    pool.take(LIMIT_BYTES // 2)
    with pytest.raises(OutOfMemory, match=f"{LIMIT_BYTES} bytes"):
        pool.take(LIMIT_BYTES)


def test_kept_blocks_make_room_before_memory_is_refused(pool: BlockPool) -> None:
    for block in [pool.take(1 << 16) for _ in range(4)]:
        pool.give_back(block)
    assert pool.take(LIMIT_BYTES).size_bytes == LIMIT_BYTES
    assert pool.kept_bytes == 0


def test_kept_blocks_are_freed_for_an_allocator_that_has_no_memory_left(pool: BlockPool, allocator: Allocator) -> None:
    pool.give_back(pool.take(1000))
    allocator.refusals = 1
    assert pool.take(5000).size_bytes >= 5000
    assert pool.kept_bytes == 0


def test_an_allocator_without_memory_is_asked_once_if_nothing_is_kept(pool: BlockPool, allocator: Allocator) -> None:
    pool.take(1000)
    allocator.refusals = 1
    with pytest.raises(OutOfMemory):
        pool.take(5000)
    assert pool.take(5000).size_bytes >= 5000


def test_a_lent_block_does_not_count_until_it_is_adopted(pool: BlockPool) -> None:
    pool.give_back(pool.take(1000))
    lent = pool.lend(990)
    assert pool.kept_bytes == 0
    for _ in range(3):
        pool.lend(LIMIT_BYTES)
    assert pool.adopt(lent, 990) is lent


def test_a_lent_block_that_is_taken_back_is_kept_for_the_next_request(pool: BlockPool) -> None:
    lent = pool.lend(1000)
    pool.take_back(lent)
    assert pool.lend(1000) is lent
    pool.take_back(lent)
    assert pool.take(1000) is lent


def test_blocks_that_are_taken_back_are_kept_only_where_there_is_room(pool: BlockPool) -> None:
    for lent in [pool.lend(LIMIT_BYTES) for _ in range(3)]:
        pool.take_back(lent)
    pool.lend(64)
    assert pool.kept_bytes <= LIMIT_BYTES
    pool.take(LIMIT_BYTES)
    pool.clear()
    assert pool.kept_bytes == 0
