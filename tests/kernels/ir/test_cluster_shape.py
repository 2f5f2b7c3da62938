"""The parts of a block's shared memory follow one another."""

from __future__ import annotations

import pytest

from fusewire_kernels.ir.cluster_shape import DEPTH_STEP, ClusterShape, depth, in_warps, pitch

SHAPE = ClusterShape(
    clusters=4, blocks=2, groups=3, rows_a_thread=2, widths=(10, 64), products=((64, 64), (10, 64)), exchanged=(64, 10)
)


def test_columns_of_products_come_first_then_two_copies_of_rows_then_two_barriers_for_each() -> None:
    assert SHAPE.exchanged_at_bytes == SHAPE.columns_bytes(64, 64) + SHAPE.columns_bytes(10, 64)
    assert SHAPE.barriers_at_bytes == SHAPE.exchanged_at_bytes + 2 * (SHAPE.rows_bytes(64) + SHAPE.rows_bytes(10))
    assert SHAPE.shared_bytes == SHAPE.barriers_at_bytes + 2 * 2 * 8


def test_a_block_has_a_part_of_the_columns_and_all_rows_of_its_cluster() -> None:
    assert (SHAPE.height, SHAPE.width(64), SHAPE.width(9), SHAPE.threads_a_group) == (6, 32, 5, 32)


@pytest.mark.parametrize("inner", [1, 32, 33, 1000])
def test_a_column_has_room_for_whole_steps_and_a_gap(inner: int) -> None:
    assert inner <= depth(inner) < inner + DEPTH_STEP
    assert depth(inner) % DEPTH_STEP == 0
    assert depth(inner) < pitch(inner)


@pytest.mark.parametrize(("threads", "of_warps"), [(1, 32), (32, 32), (33, 64)])
def test_threads_come_in_warps(threads: int, of_warps: int) -> None:
    assert in_warps(threads) == of_warps
