"""Chooses how a cluster of blocks divides the products of a persistent kernel. Pure.

A cluster is a few blocks that run at the same time and write to one another's shared memory. A block keeps some columns
of each right operand in shared memory in all iterations, and multiplies some rows of the left operands by them.
"""

from __future__ import annotations

from typing import NamedTuple

THREADS = 128  # of a block. All of them bring in the operands; then each column has one thread.
MOST_SHARED_BYTES = 227 << 10  # of a block, on devices of compute capability 9.0
_MOST_BLOCKS = 8  # of a cluster that every device with clusters can run
_LEAST_WIDTH = 32
_MOST_ROWS = 1024  # beyond, a launch for each iteration uses the device as well
# Clusters that do not run at once follow one another, and an iteration of each takes longer the more elements of the
# right operand a block has. With more of these in all a captured graph is faster: with 1,024 rows of 256 elements
# (6.6 µs an iteration instead of 10.6) or 64 of 512 (5.4 instead of 5.9), but not with 512 of 256 (6.1 instead of 5.6).
_MOST_ELEMENTS = 60_000
_MOST_IN_TURN = 4  # clusters without products that follow one another
# A graph reads the right operand of every product again in each iteration. For products of so few multiplications it is
# never faster, however many there are: 120 of 1 × 512 take 13.8 µs an iteration instead of 64.6, 120 of 16 × 256 take
# 22.3 instead of 32.9, but 60 of 64 × 256 take 37.4 instead of 26.4.
_FEW_MULTIPLICATIONS = 2_000_000
# Two rows use each element of a column twice. With more rows a thread, or more groups, an iteration takes longer.
_ROWS_A_THREAD = 2
_MOST_GROUPS = 3
_CLUSTERS = 15  # of `_MOST_BLOCKS` that an H100 or H200 runs at once, each block on a multiprocessor of its own
DEPTH_STEP = 32  # elements of k that a thread adds in two turns
_WARP = 32
_GAP = 4  # elements between columns in shared memory, so that neighbouring threads use different banks


class ClusterShape(NamedTuple):
    """A cluster of `blocks` blocks computes some rows, and a block `width` columns, over `depth` steps of k.

    `clusters` compute all rows. A thread computes `rows_a_thread` rows of one column; `groups` groups of threads share
    the rows of a cluster. The operands are padded to `depth` steps. In shared memory, columns are `pitch` elements
    apart. The kernel has so many `products`, and left operands that blocks have `exchanged`.
    """

    clusters: int
    blocks: int
    groups: int
    rows_a_thread: int
    width: int
    depth: int
    products: int
    exchanged: int

    @property
    def height(self) -> int:
        """The rows of a cluster."""
        return self.groups * self.rows_a_thread

    @property
    def threads_a_group(self) -> int:
        return _in_warps(self.width)

    @property
    def pitch(self) -> int:
        return self.depth + _GAP

    @property
    def columns_bytes(self) -> int:
        """The bytes of the columns of all right operands."""
        return self.products * self.width * self.pitch * 4

    @property
    def rows_bytes(self) -> int:
        """The bytes of the rows of one left operand."""
        return self.height * self.pitch * 4

    @property
    def barriers_at_bytes(self) -> int:
        """Where the barriers lie behind the rows of the first left operand."""
        return 2 * self.exchanged * self.rows_bytes

    @property
    def shared_bytes(self) -> int:
        """The shared memory of a block: its columns, the rows of each left operand twice, and two barriers for each."""
        return self.columns_bytes + self.barriers_at_bytes + 2 * self.exchanged * 8


def cluster_shape(rows: int, inner: int, products: int = 1, exchanged: int = 1) -> ClusterShape | None:
    """Returns the shape for products of (rows, inner) and (inner, inner), of which so many left operands are exchanged.

    Returns None if they do not fit, or if a captured graph is faster. Few rows have a cluster each. More rows share
    clusters, so that each block has a multiprocessor of its own. The numbers were measured on an H200, with one product
    of 1 to 1,024 rows of 128 to 512 elements.
    """
    blocks = min(-(-inner // _LEAST_WIDTH), _MOST_BLOCKS)
    width = -(-inner // blocks)
    wanted = -(-rows // _CLUSTERS)
    rows_a_thread = 1 if wanted == 1 else _ROWS_A_THREAD
    groups = max(min(-(-wanted // rows_a_thread), _MOST_GROUPS, THREADS // _in_warps(width)), 1)
    depth = -(-inner // DEPTH_STEP) * DEPTH_STEP
    clusters = -(-rows // (groups * rows_a_thread))
    shape = ClusterShape(clusters, blocks, groups, rows_a_thread, width, depth, products, exchanged)
    in_turn = -(-shape.clusters // (_CLUSTERS * _MOST_BLOCKS // blocks))
    most = _MOST_ELEMENTS // (width * inner) if products else _MOST_IN_TURN
    pays = rows <= _MOST_ROWS and in_turn <= most
    fits = width <= THREADS and shape.shared_bytes <= MOST_SHARED_BYTES
    return shape if pays and fits else None


def most_in_turn(shape: ClusterShape, rows: int, inner: int) -> int:
    """Returns how many clusters of a launch should follow one another, or 0 if it is any number.

    With more of them a captured graph is faster. The launch computes products of (rows, inner) and (inner, inner), each
    with operands of its own.
    """
    if rows * inner * inner <= _FEW_MULTIPLICATIONS:
        return 0
    return _MOST_ELEMENTS // (shape.width * inner)


def _in_warps(threads: int) -> int:
    return -(-threads // _WARP) * _WARP
