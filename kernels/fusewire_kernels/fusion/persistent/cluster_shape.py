"""Chooses how a cluster of blocks divides the products of a persistent kernel. Pure.

With too many rows, or too many elements in a block, a captured graph is faster. The numbers here were measured.
"""

from __future__ import annotations

from collections.abc import Sequence

from fusewire_kernels.ir.cluster_shape import THREADS, ClusterShape, in_warps

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


def cluster_shape(
    rows: int, widths: Sequence[int], products: Sequence[tuple[int, int]], exchanged: Sequence[int]
) -> ClusterShape | None:
    """Returns the shape for stages of so many rows, and of columns of these numbers (see `ClusterShape`).

    Returns None if they do not fit, or if a captured graph is faster. Few rows have a cluster each. More rows share
    clusters, so that each block has a multiprocessor of its own. The numbers were measured on an H200, with one product
    of 1 to 1,024 rows of 128 to 512 elements.
    """
    most_columns = max(widths)
    blocks = min(-(-most_columns // _LEAST_WIDTH), _MOST_BLOCKS)
    width = -(-most_columns // blocks)
    wanted = -(-rows // _CLUSTERS)
    rows_a_thread = 1 if wanted == 1 else _ROWS_A_THREAD
    groups = max(min(-(-wanted // rows_a_thread), _MOST_GROUPS, THREADS // in_warps(width)), 1)
    clusters = -(-rows // (groups * rows_a_thread))
    shape = ClusterShape(clusters, blocks, groups, rows_a_thread, tuple(widths), tuple(products), tuple(exchanged))
    in_turn = -(-shape.clusters // (_CLUSTERS * _MOST_BLOCKS // blocks))
    most = _MOST_ELEMENTS // _most_elements(shape) if products else _MOST_IN_TURN
    pays = rows <= _MOST_ROWS and in_turn <= most
    fits = width <= THREADS and shape.shared_bytes <= MOST_SHARED_BYTES
    return shape._replace(most_in_turn=_most_in_turn(shape, rows)) if pays and fits else None


def _most_in_turn(shape: ClusterShape, rows: int) -> int:
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
