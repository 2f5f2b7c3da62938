"""Chooses the grid of a CUDA kernel: its entry point, the number of blocks, and the threads of each. Pure.

The first line of a kernel's CUDA source names its schedule, so a grid can be chosen from the source and the sizes in a
plan. A grid decides which thread computes an element. It never decides how, so every grid gives the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from math import prod
from typing import NamedTuple

from fusewire_kernels.ir.kernel import Kernel, LineKernel, MatrixKernel, ProductKernel
from fusewire_kernels.ops.order import CHUNK, LANES
from fusewire_kernels.ops.small_matrices import MOST_SIDE
from fusewire_kernels.plan.plan import ROWS_THAT_CHOOSE

_HEAD = "// schedule: "
_POINT_THREADS = 256
# Twice the blocks that a large device runs at once. If points remain, a block that computes more of them is faster than
# a new block.
_MOST_POINT_BLOCKS = 1 << 11
_ROW_THREADS = 256
_BLOCK_THREADS = LANES * LANES
_PARTS_OF_A_KEY = 2  # of a kernel: fw, and a hash; the key of a source may have its entry behind them
_MOST_BLOCKS = 1 << 16  # if there is work for more blocks, each block does several parts of the work


class Schedule(Enum):
    """How the points of a kernel (the indices of its result) are divided among threads."""

    POINTS = "points"
    ROWS = "rows"
    REGISTER_ROWS = "register_rows"
    COLUMNS = "columns"
    PRODUCT = "product"
    SCANS = "scans"
    SORTS = "sorts"
    MERGES = "merges"
    SEGMENTS = "segments"
    MATRICES = "matrices"


class Layout(NamedTuple):
    """A schedule over `rank` outer dimensions (batch dimensions for a product)."""

    schedule: Schedule
    rank: int


class Tile(NamedTuple):
    """An entry point of a product kernel. Its name is the size of the part of the result that a block computes.

    `down` × `across` threads compute `high` × `wide` elements each of that part. A block loads the operands in slices,
    each `depth` indices long along the summed axis, and has `kept` of them in shared memory. A thread reads `steps` of
    these indices at a time. If this tile gives fewer than `least_blocks` blocks, the next smaller tile is faster.
    """

    down: int
    across: int
    high: int
    wide: int
    depth: int
    steps: int
    kept: int
    least_blocks: int

    @property
    def threads(self) -> int:
        """The threads of a block: if few of them compute, they are a warp of their own behind those that load."""
        return LOADING_THREADS + (LANES if self.down * self.across < LOADING_THREADS else 0)

    @property
    def height(self) -> int:
        return self.down * self.high

    @property
    def width(self) -> int:
        return self.across * self.wide

    @property
    def entry(self) -> str:
        return f"{self.height}x{self.width}"


LOADING_THREADS = 128

# One row takes the time of its loads: so there are more slices in shared memory, and most threads only load. Lines of
# 32 columns arrive faster than lines of 16, but give half as many blocks.
_ONE_ROW = Tile(1, 16, 1, 1, 128, 8, 5, 1)
_ONE_WIDE_ROW = Tile(1, 32, 1, 1, 64, 8, 5, 1)
_LEAST_WIDE_ROW = 64 * _ONE_WIDE_ROW.width

# Of a narrow result the loads of the left operand take the time, and most columns of any other tile would be empty.
_NARROW = Tile(16, 8, 8, 2, 16, 4, 3, 96)

# A larger tile reads less memory for each product, but gives fewer blocks. A device is used well only if most of its
# multiprocessors (132 on an H200) have a block. With most tiles a thread loads 24 elements of each slice. Computing on
# these takes at least as long as loading the next 24.
_SMALLEST = Tile(8, 16, 1, 1, 128, 16, 3, 1)
_LARGER = (
    Tile(8, 16, 2, 2, 64, 8, 3, 64),
    Tile(8, 16, 4, 4, 32, 4, 3, 96),
    Tile(8, 16, 8, 4, 16, 4, 3, 96),
    Tile(8, 16, 8, 8, 16, 4, 3, 96),
)
TILES = (_ONE_ROW, _ONE_WIDE_ROW, _SMALLEST, *_LARGER, _NARROW)


# The entry points of a kernel that keeps its rows in registers, if they are not too long for them. Rows of whole chunks
# need no test whether a thread has an element, which would be one instruction in seven. If there are more narrow rows
# than warps that a device runs at once, a few threads share a row: these have several loads under way, and a warp
# reduces several rows by the same instructions.
WHOLE_ROWS, SHORT_ROWS, NARROW_ROWS, LONG_ROWS = "whole", "short", "narrow", "long"
LONGEST_SHORT_ROW = 16 * CHUNK
THREADS_A_NARROW_ROW = 8
LONGEST_NARROW_ROW = THREADS_A_NARROW_ROW * CHUNK // LANES
_MANY_ROWS = 1 << 13

# The entry point in which a thread reduces all elements of a row or column. It needs many threads with few elements
# each, because a thread has at most four loads under way. Neighbouring threads read neighbouring columns at once, but
# neighbouring rows only if a row is hardly longer than what a load brings.
FEW_ELEMENTS = "few"
_FEW_IN_A_COLUMN, _FEW_IN_A_ROW = LANES, 8
_VERY_MANY_POINTS = 1 << 15


# A block scans a line of several segments, a segment a warp, or as many shorter lines as it has warps.
LINES = (Schedule.SCANS, Schedule.SORTS, Schedule.MERGES, Schedule.SEGMENTS)
SCANNING_WARPS = 8
SCAN_SEGMENT = 128
SORTING_THREADS = 512
SEGMENT_WARPS = 8


class MatrixBlock(NamedTuple):
    """An entry point of a kernel of small matrices: the block for those of at most `most_side` rows and columns.

    `across` neighbouring threads work on neighbouring elements of a row.
    """

    entry: str
    most_side: int
    threads: int
    across: int


MATRIX_BLOCKS = (MatrixBlock("warp", 32, LANES, 8), MatrixBlock("block", MOST_SIDE, 256, LANES))


class Grid(NamedTuple):
    """The x dimension of a launch. The name of the function ends with `entry`: a tile, a kind of length, or nothing."""

    entry: str
    blocks: int
    threads: int


def tiles_of(kernel: ProductKernel) -> tuple[Tile, ...]:
    """Returns the tiles of a product. A left operand of one row is never transposed."""
    return tuple(tile for tile in TILES if not (kernel.a_is_transposed and tile.down == 1))


def layout(kernel: Kernel) -> Layout:
    """Returns the layout of a kernel's CUDA text, unless it keeps rows in registers."""
    if isinstance(kernel, ProductKernel):
        return Layout(Schedule.PRODUCT, kernel.batch_rank)
    if isinstance(kernel, LineKernel):
        return Layout(_schedule_of_lines(kernel), 0)
    if isinstance(kernel, MatrixKernel):
        return Layout(Schedule.MATRICES, 0)
    if not kernel.has_inner:
        return Layout(Schedule.POINTS, kernel.rank)
    return Layout(Schedule.COLUMNS if kernel.runs_along_columns else Schedule.ROWS, kernel.rank)


def head_line(layout: Layout) -> str:
    """Returns the first line of a kernel's CUDA text."""
    schedule, rank = layout
    return f"{_HEAD}{schedule.value} {rank}\n"


def layout_of(text: str) -> Layout:
    """Returns the layout that the first line of a CUDA text names. Raises ValueError if it names none."""
    head, _, _ = text.partition("\n")
    if not head.startswith(_HEAD):
        raise ValueError(f"a CUDA kernel begins with {_HEAD!r}, not with {head[:40]!r}")
    schedule, rank = head.removeprefix(_HEAD).split()
    return Layout(Schedule(schedule), int(rank))


def grid(layout: Layout, sizes: Sequence[int], instances: int, rows: int) -> Grid:
    """Returns the grid of one instance of a kernel over `sizes`, in a launch of all instances of so many rows."""
    schedule, rank = layout
    if schedule in LINES:
        return _grid_of_lines(schedule, *sizes)
    if schedule is Schedule.MATRICES:
        return _grid_of_matrices(*sizes)
    outer = prod(sizes[:rank])
    if schedule is Schedule.POINTS:
        return _grid_of_points(outer)
    if schedule is Schedule.ROWS:
        return _grid_of_rows(outer, sizes[rank], "")
    if _has_few_elements(schedule, outer * instances, sizes[rank]):
        return _grid_of_points(outer, FEW_ELEMENTS)
    if schedule is Schedule.REGISTER_ROWS:
        return _grid_of_rows(outer, sizes[rank], _entry_of_rows(outer * instances, sizes[rank]))
    if schedule is Schedule.COLUMNS:
        return _grid(-(-outer // LANES), _BLOCK_THREADS)
    height, width = sizes[rank : rank + 2]
    return _grid_of_product(outer, height, width, instances * min(rows, ROWS_THAT_CHOOSE))


def entries(layout: Layout, sizes: Sequence[int], instances: int, most_rows: int) -> frozenset[str]:
    """Returns the entries of all grids of a kernel over `sizes` with so many instances, of one to `most_rows` rows."""
    schedule, rank = layout
    if schedule is not Schedule.PRODUCT:
        return frozenset((grid(layout, sizes, instances, 1).entry,))
    rows, columns = sizes[rank : rank + 2]
    chosen = []
    for tile in _fitting(rows, columns):
        blocks = max(prod(sizes[:rank]) * _blocks(tile, rows, columns), 1) * instances  # for one row
        if blocks * most_rows >= tile.least_blocks:
            chosen.append(_entry(tile.entry))
        if blocks >= tile.least_blocks:
            break
    return frozenset(chosen)


def source_of_entry(keys: Sequence[str], first: int, entry: str) -> int:
    """Returns the number of the source that holds an entry of a kernel.

    `keys` are those of a plan's sources, and `first` is the number of the kernel's first source. Raises ValueError if
    the plan lacks the entry.
    """
    kernel = "_".join(keys[first].split("_")[:_PARTS_OF_A_KEY])
    return keys.index(kernel + entry, first)


def _schedule_of_lines(kernel: LineKernel) -> Schedule:
    if not kernel.sorts:
        return Schedule.SEGMENTS if kernel.reduces_segments else Schedule.SCANS
    return Schedule.MERGES if kernel.merges else Schedule.SORTS


def _grid_of_lines(schedule: Schedule, before: int, length: int, behind: int, run: int, segments: int) -> Grid:
    """Chooses a grid: a block scans or sorts a line or a run, a warp reduces a segment, a thread merges one element."""
    lines = before * behind
    if schedule is Schedule.MERGES:
        return _grid_of_points(lines * length)
    if schedule is Schedule.SCANS:
        return _grid(lines if length > SCAN_SEGMENT else -(-lines // SCANNING_WARPS), SCANNING_WARPS * LANES)
    if schedule is Schedule.SEGMENTS:
        return _grid(-(-lines * segments // SEGMENT_WARPS), SEGMENT_WARPS * LANES)
    return _grid(lines * -(-length // max(run, 1)), SORTING_THREADS)


def _grid_of_matrices(count: int, rows: int, columns: int, others: int, is_upper: int) -> Grid:
    block = next(each for each in MATRIX_BLOCKS if max(rows, columns) <= each.most_side)
    return _grid(count, block.threads, block.entry)


def _grid_of_points(points: int, entry: str = "") -> Grid:
    return _grid(min(-(-points // _POINT_THREADS), _MOST_POINT_BLOCKS), _POINT_THREADS, entry)


def _has_few_elements(schedule: Schedule, points: int, extent: int) -> bool:
    if schedule not in (Schedule.COLUMNS, Schedule.REGISTER_ROWS) or points <= _VERY_MANY_POINTS:
        return False
    return extent <= (_FEW_IN_A_COLUMN if schedule is Schedule.COLUMNS else _FEW_IN_A_ROW)


def _entry_of_rows(rows: int, extent: int) -> str:
    if extent > LONGEST_SHORT_ROW:
        return LONG_ROWS
    if extent <= LONGEST_NARROW_ROW and rows > _MANY_ROWS:
        return NARROW_ROWS
    return WHOLE_ROWS if extent > 0 and extent % CHUNK == 0 else SHORT_ROWS


def _grid_of_rows(rows: int, extent: int, entry: str) -> Grid:
    warps = min(-(-extent // CHUNK), LANES)
    if warps > 1:
        return _grid(rows, warps * LANES, entry)
    rows_a_block = _ROW_THREADS // (THREADS_A_NARROW_ROW if entry == NARROW_ROWS else LANES)
    return _grid(-(-rows // rows_a_block), _ROW_THREADS, entry)


def _grid_of_product(batches: int, rows: int, columns: int, copies: int) -> Grid:
    """Chooses the largest fitting tile that gives enough blocks."""
    tiles = ((tile, max(batches * _blocks(tile, rows, columns), 1)) for tile in _fitting(rows, columns))
    tile, blocks = next(each for each in tiles if each[1] * copies >= each[0].least_blocks)
    return _grid(blocks, tile.threads, tile.entry)


def _fitting(rows: int, columns: int) -> list[Tile]:
    """Returns the tiles that are not too large for a result, the largest first.

    The result must be higher than half the tile and wider than half the tile, but for the smallest tile. Of the tiles
    of one height the widest is the best.
    """
    if rows == 1:
        return [_ONE_WIDE_ROW if columns >= _LEAST_WIDE_ROW else _ONE_ROW]
    if columns <= _NARROW.width and rows > _NARROW.height // 2:
        return [_NARROW, _SMALLEST]
    larger = {tile.height: tile for tile in _LARGER if rows > tile.height // 2 and columns > tile.width // 2}
    return [*reversed(larger.values()), _SMALLEST]


def _blocks(tile: Tile, rows: int, columns: int) -> int:
    return -(-rows // tile.height) * -(-columns // tile.width)


def _grid(blocks: int, threads: int, entry: str = "") -> Grid:
    return Grid(_entry(entry), max(1, min(blocks, _MOST_BLOCKS)), threads)


def _entry(name: str) -> str:
    return f"_{name}" if name else ""
