"""Chooses how a cluster of blocks divides the products of a persistent kernel. Pure.

A cluster is a few blocks that run at the same time and write to one another's shared memory. A block keeps some columns
of each right operand in shared memory in all iterations, and multiplies some rows of the left operands by them.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    """A cluster of `blocks` blocks computes some rows; `clusters` compute all rows.

    A thread computes `rows_a_thread` rows of one column of each stage; `groups` groups of threads share the rows of a
    cluster. A group has a thread for each of the `most_columns`, in one of the blocks. `products` are the k and the
    columns of each product, and `exchanged` the columns of each value that blocks send to one another.
    """

    clusters: int
    blocks: int
    groups: int
    rows_a_thread: int
    most_columns: int
    products: tuple[tuple[int, int], ...]
    exchanged: tuple[int, ...]

    @property
    def height(self) -> int:
        """The rows of a cluster."""
        return self.groups * self.rows_a_thread

    @property
    def threads_a_group(self) -> int:
        return _in_warps(self.width(self.most_columns))

    def width(self, columns: int) -> int:
        """Returns how many of some columns a block computes."""
        return -(-columns // self.blocks)

    def columns_bytes(self, inner: int, columns: int) -> int:
        """Returns the bytes of a block's columns of a right operand with so many k."""
        return self.width(columns) * pitch(inner) * 4

    def rows_bytes(self, columns: int) -> int:
        """Returns the bytes of the rows of an exchanged value."""
        return self.height * pitch(columns) * 4

    @property
    def exchanged_at_bytes(self) -> int:
        """Where the rows of exchanged values lie, behind the columns."""
        return sum(self.columns_bytes(*product) for product in self.products)

    @property
    def barriers_at_bytes(self) -> int:
        """Where the barriers lie, behind two copies of the rows of each exchanged value."""
        return self.exchanged_at_bytes + 2 * sum(map(self.rows_bytes, self.exchanged))

    @property
    def shared_bytes(self) -> int:
        """The shared memory of a block: columns, rows, and two barriers for each exchanged value."""
        return self.barriers_at_bytes + 2 * 8 * len(self.exchanged)


def depth(inner: int) -> int:
    """Returns the steps of a chain over k, with those that add nothing at its end."""
    return -(-inner // DEPTH_STEP) * DEPTH_STEP


def pitch(inner: int) -> int:
    """Returns how many elements a column of so many k is behind the one before in shared memory."""
    return depth(inner) + _GAP


def cluster_shape(
    rows: int, most_columns: int, products: Sequence[tuple[int, int]], exchanged: Sequence[int]
) -> ClusterShape | None:
    """Returns the shape for stages of so many rows, and at most so many columns (see `ClusterShape`).

    Returns None if they do not fit, or if a captured graph is faster. Few rows have a cluster each. More rows share
    clusters, so that each block has a multiprocessor of its own. The numbers were measured on an H200, with one product
    of 1 to 1,024 rows of 128 to 512 elements.
    """
    blocks = min(-(-most_columns // _LEAST_WIDTH), _MOST_BLOCKS)
    width = -(-most_columns // blocks)
    wanted = -(-rows // _CLUSTERS)
    rows_a_thread = 1 if wanted == 1 else _ROWS_A_THREAD
    groups = max(min(-(-wanted // rows_a_thread), _MOST_GROUPS, THREADS // _in_warps(width)), 1)
    clusters = -(-rows // (groups * rows_a_thread))
    shape = ClusterShape(clusters, blocks, groups, rows_a_thread, most_columns, tuple(products), tuple(exchanged))
    in_turn = -(-shape.clusters // (_CLUSTERS * _MOST_BLOCKS // blocks))
    most = _MOST_ELEMENTS // _most_elements(shape) if products else _MOST_IN_TURN
    pays = rows <= _MOST_ROWS and in_turn <= most
    fits = width <= THREADS and shape.shared_bytes <= MOST_SHARED_BYTES
    return shape if pays and fits else None


def most_in_turn(shape: ClusterShape, rows: int) -> int:
    """Returns how many clusters of a launch should follow one another, or 0 if it is any number.

    With more of them a captured graph is faster. The launch computes products of so many rows, each with operands of
    its own.
    """
    if rows * max([inner * columns for inner, columns in shape.products], default=0) <= _FEW_MULTIPLICATIONS:
        return 0
    return _MOST_ELEMENTS // _most_elements(shape)


def _most_elements(shape: ClusterShape) -> int:
    """Returns the elements of the largest right operand in a block."""
    return max([shape.width(columns) * inner for inner, columns in shape.products])


def _in_warps(threads: int) -> int:
    return -(-threads // _WARP) * _WARP
