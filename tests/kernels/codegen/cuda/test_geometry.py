"""Grids: read from a CUDA text's first line, never without blocks, never beyond what a device takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire_kernels.codegen.cuda.geometry import (
    LINES,
    LONGEST_SHORT_ROW,
    TILES,
    Grid,
    Layout,
    Schedule,
    Tile,
    entries,
    grid,
    layout,
    layout_of,
    source_of_entry,
)
from fusewire_kernels.codegen.generate import generate
from fusewire_kernels.codegen.preludes import prelude
from fusewire_kernels.ops.order import CHUNK, LANES
from fusewire_kernels.plan.plan import ROWS_THAT_CHOOSE
from tests.kernels.codegen.kernels_of_note import NOTED

MOST_THREADS = 1024


@pytest.mark.parametrize("name", NOTED)
def test_the_first_line_of_a_text_names_its_layout(name: str) -> None:
    named, plain = layout_of(generate(NOTED[name], "cuda")[0].text), layout(NOTED[name])
    assert named.rank == plain.rank
    assert named.schedule in (plain.schedule, Schedule.REGISTER_ROWS)


def test_a_text_without_a_layout_is_refused() -> None:
    with pytest.raises(ValueError, match="schedule"):
        layout_of(generate(NOTED["pointwise"], "c")[0].text)


def test_chunk_and_lanes_are_those_of_the_prelude() -> None:
    assert f"#define FW_CHUNK {CHUNK}\n" in prelude("cuda")
    assert f"#define FW_LANES {LANES}\n" in prelude("cuda")


@given(
    st.sampled_from([each for each in Schedule if each not in (*LINES, Schedule.MATRICES)]),
    st.lists(st.integers(0, 10_000), min_size=2, max_size=4),
    st.integers(1, 64),
    st.integers(1, 64),
)
def test_a_grid_has_blocks_and_no_more_threads_than_a_device_takes(
    schedule: Schedule, outer: list[int], instances: int, rows: int
) -> None:
    entry, blocks, threads = grid(Layout(schedule, len(outer)), (*outer, 100, 200, 300), instances, rows)
    assert 1 <= blocks <= 65536
    assert 32 <= threads <= MOST_THREADS
    assert bool(entry) == (schedule in (Schedule.PRODUCT, Schedule.REGISTER_ROWS))


@given(st.sampled_from(LINES), st.tuples(*[st.integers(0, 100_000)] * 5))
def test_a_grid_of_lines_has_blocks_and_no_more_threads_than_a_device_takes(
    schedule: Schedule, sizes: tuple[int, ...]
) -> None:
    entry, blocks, threads = grid(Layout(schedule, 0), sizes, 1, 1)
    assert 1 <= blocks <= 65536
    assert 32 <= threads <= MOST_THREADS
    assert entry == ""


def test_a_warp_scans_a_line_of_one_segment_and_a_block_a_longer_one() -> None:
    scans = Layout(Schedule.SCANS, 0)
    assert grid(scans, (64, 128, 1, 128, 0), 1, 1).blocks == 8
    assert grid(scans, (64, 129, 1, 129, 0), 1, 1).blocks == 64


def test_a_block_sorts_a_run() -> None:
    assert grid(Layout(Schedule.SORTS, 0), (3, 10_000, 2, 4096, 0), 1, 1).blocks == 3 * 2 * 3


def test_a_warp_reduces_a_segment() -> None:
    assert grid(Layout(Schedule.SEGMENTS, 0), (2, 10_000, 3, 10_000, 40), 1, 1) == ("", 2 * 3 * 40 // 8, 256)


@pytest.mark.parametrize(
    ("rows", "columns", "wanted"), [(32, 32, ("_warp", 32)), (33, 1, ("_block", 256)), (1, 64, ("_block", 256))]
)
def test_a_warp_computes_a_small_matrix_and_a_block_a_larger_one(
    rows: int, columns: int, wanted: tuple[str, int]
) -> None:
    entry, threads = wanted
    assert grid(Layout(Schedule.MATRICES, 0), (1000, rows, columns, 0, 0), 1, 1) == (entry, 1000, threads)


def test_a_block_computes_several_of_very_many_matrices() -> None:
    assert grid(Layout(Schedule.MATRICES, 0), (1 << 20, 4, 4, 1, 0), 1, 1).blocks == 1 << 16


def test_each_of_many_points_has_a_thread_until_the_device_is_full() -> None:
    points = Layout(Schedule.POINTS, 2)
    assert grid(points, (1, 256 * 100 + 1), 1, 1)[1:] == (101, 256)
    assert grid(points, (4096, 4096), 1, 1)[1:] == (2048, 256)


def test_a_row_beyond_one_chunk_gets_a_block_with_a_warp_for_each_chunk() -> None:
    rows = Layout(Schedule.ROWS, 1)
    assert grid(rows, (100, CHUNK), 1, 1)[1:] == (13, 256)
    assert grid(rows, (100, CHUNK + 1), 1, 1)[1:] == (100, 64)
    assert grid(rows, (100, 33 * CHUNK), 1, 1)[1:] == (100, 1024)


def test_rows_are_kept_in_registers_unless_they_are_long() -> None:
    rows = Layout(Schedule.REGISTER_ROWS, 1)
    assert grid(rows, (100, LONGEST_SHORT_ROW), 1, 1) == ("_whole", 100, MOST_THREADS // 2)
    assert grid(rows, (100, LONGEST_SHORT_ROW - 1), 1, 1) == ("_short", 100, MOST_THREADS // 2)
    assert grid(rows, (100, LONGEST_SHORT_ROW + 1), 1, 1) == ("_long", 100, 17 * LANES)


@pytest.mark.parametrize(
    ("rows", "instances", "entry"),
    [(8192, 1, "_short"), (8193, 1, "_narrow"), (4096, 16, "_narrow"), (16, 16, "_short")],
)
def test_many_narrow_rows_share_warps_in_one_instance_or_in_many(rows: int, instances: int, entry: str) -> None:
    layout = Layout(Schedule.REGISTER_ROWS, 1)
    assert grid(layout, (rows, 64), instances, 1).entry == entry
    assert entries(layout, (rows, 64), instances, ROWS_THAT_CHOOSE) == {entry}


@pytest.mark.parametrize(
    ("rows", "columns", "copies", "entry"),
    [
        (1, 1024, 64, "_1x16"),
        (1, 4096, 1, "_1x32"),
        (2, 4096, 64, "_8x16"),
        (64, 256, 1, "_8x16"),
        (64, 1024, 1, "_16x32"),
        (256, 1024, 1, "_32x64"),
        (64, 256, 16, "_32x64"),
        (1024, 1024, 1, "_64x128"),
        (65536, 64, 1, "_64x64"),
        (65536, 16, 1, "_128x16"),
        (65536, 1, 1, "_128x16"),
        (4096, 16, 1, "_8x16"),
    ],
)
def test_a_product_takes_the_largest_tile_that_fills_the_device(
    rows: int, columns: int, copies: int, entry: str
) -> None:
    assert _product_grid(rows, columns, copies).entry == entry


@pytest.mark.parametrize(("rows", "columns"), [(100_000, 10), (10, 100_000)])
def test_a_narrow_product_takes_no_tile_of_which_it_fills_half_or_less(rows: int, columns: int) -> None:
    tile = _tile(_product_grid(rows, columns, 1))
    assert tile.height < 2 * rows
    assert tile.width < 2 * columns


@pytest.mark.parametrize("rows", [1, 8, 9, 63, 64, 65, 1000])
@pytest.mark.parametrize("columns", [1, 16, 17, 127, 128, 129, 1000])
def test_the_tiles_of_a_product_cover_its_result(rows: int, columns: int) -> None:
    chosen = _product_grid(rows, columns, 1)
    tile = _tile(chosen)
    assert chosen.blocks == -(-rows // tile.height) * -(-columns // tile.width)


@pytest.mark.parametrize(
    ("rows", "columns", "names"),
    [
        (1, 1024, {"_1x16"}),
        (1, 4096, {"_1x32"}),
        (8, 4096, {"_8x16"}),
        (64, 256, {"_8x16", "_16x32", "_32x64"}),
        (128, 256, {"_16x32", "_32x64", "_64x128"}),
        (64, 1024, {"_16x32", "_32x64", "_64x128"}),
        (4096, 4096, {"_64x128"}),
        (65536, 64, {"_64x64"}),
        (4096, 9, {"_8x16", "_128x16"}),
    ],
)
def test_the_entries_of_a_product_are_those_of_its_grids_for_any_number_of_rows(
    rows: int, columns: int, names: set[str]
) -> None:
    layout, sizes = Layout(Schedule.PRODUCT, 0), (rows, columns, 256)
    assert entries(layout, sizes, 1, ROWS_THAT_CHOOSE) == names
    assert {_product_grid(rows, columns, copies).entry for copies in (1, 2, 4, 8, 16, 32, 64, 128, 1000)} == names
    assert entries(layout, sizes, 1, most_rows=1) == {_product_grid(rows, columns, 1).entry}


@pytest.mark.parametrize("instances", [1, 3, 16])
def test_the_entries_of_several_products_are_those_of_all_together(instances: int) -> None:
    layout, sizes = Layout(Schedule.PRODUCT, 0), (64, 256, 256)
    chosen = {grid(layout, sizes, instances, rows).entry for rows in range(1, 40)}
    assert entries(layout, sizes, instances, ROWS_THAT_CHOOSE) == chosen


def test_a_kernel_of_rows_has_the_one_entry_for_their_length() -> None:
    assert entries(Layout(Schedule.REGISTER_ROWS, 1), (100, CHUNK), 1, ROWS_THAT_CHOOSE) == {"_whole"}
    assert entries(Layout(Schedule.POINTS, 1), (100,), 1, ROWS_THAT_CHOOSE) == {""}


@pytest.mark.parametrize(
    ("schedule", "points", "extent", "entry"),
    [
        (Schedule.COLUMNS, 32769, 32, "_few"),
        (Schedule.COLUMNS, 32769, 33, ""),
        (Schedule.COLUMNS, 32768, 4, ""),
        (Schedule.REGISTER_ROWS, 32769, 8, "_few"),
        (Schedule.REGISTER_ROWS, 32769, 9, "_narrow"),
        (Schedule.ROWS, 32769, 4, ""),
    ],
)
def test_a_thread_takes_a_whole_point_if_very_many_have_few_elements(
    schedule: Schedule, points: int, extent: int, entry: str
) -> None:
    assert grid(Layout(schedule, 1), (points, extent), 1, 1).entry == entry
    assert entries(Layout(schedule, 1), (points, extent), 1, ROWS_THAT_CHOOSE) == {entry}


def test_a_thread_takes_one_point_until_the_device_is_full() -> None:
    assert grid(Layout(Schedule.COLUMNS, 1), (256 * 200 + 1, 4), 1, 1) == ("_few", 201, 256)
    assert grid(Layout(Schedule.COLUMNS, 1), (1 << 22, 4), 1, 1) == ("_few", 2048, 256)


def _product_grid(rows: int, columns: int, copies: int) -> Grid:
    return grid(Layout(Schedule.PRODUCT, 0), (rows, columns, 256), 1, copies)


def _tile(chosen: Grid) -> Tile:
    return next(tile for tile in TILES if f"_{tile.entry}" == chosen.entry)


@pytest.mark.parametrize(
    ("first", "entry", "number"), [(0, "_8x16", 0), (0, "_16x32", 1), (2, "", 2), (3, "_16x32", 3), (3, "_8x16", 4)]
)
def test_an_entry_is_found_among_the_sources_of_its_kernel(first: int, entry: str, number: int) -> None:
    keys = ["fw_1a_8x16", "fw_1a_16x32", "fw_2b", "fw_3c_16x32", "fw_3c_8x16"]
    assert source_of_entry(keys, first, entry) == number


def test_an_entry_that_only_another_kernel_has_is_not_taken_for_it() -> None:
    with pytest.raises(ValueError, match="fw_1a_16x32"):
        source_of_entry(["fw_1a_8x16", "fw_2b_16x32"], 0, "_16x32")
