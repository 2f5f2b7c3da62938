"""Says how a cluster of blocks divides the products of a persistent kernel, and where all lies in shared memory. Pure.

A cluster is a few blocks that run at the same time and write to one another's shared memory. A block keeps some columns
of each right operand in shared memory in all iterations, and multiplies some rows of the left operands by them.
"""

from __future__ import annotations

from typing import NamedTuple

THREADS = 128  # of a block. All of them bring in the operands; then each column has one thread.
DEPTH_STEP = 32  # elements of k that a thread adds in two turns
_WARP = 32
_GAP = 4  # elements between columns in shared memory, so that neighbouring threads use different banks


class ClusterShape(NamedTuple):
    """A cluster of `blocks` blocks computes some rows; `clusters` compute all rows.

    A thread computes `rows_a_thread` rows of one column of each stage; `groups` groups of threads share the rows of a
    cluster. `widths` are the numbers of columns that stages have, or what is read from memory to be exchanged. A group
    has a thread for each of the most columns, in one of the blocks. `products` are the k and the columns of each
    product, and `exchanged` the columns of each value that blocks send to one another. `most_in_turn` is how many
    clusters of a launch should follow one another, or 0 if it is any number.
    """

    clusters: int
    blocks: int
    groups: int
    rows_a_thread: int
    widths: tuple[int, ...]
    products: tuple[tuple[int, int], ...]
    exchanged: tuple[int, ...]
    most_in_turn: int = 0

    @property
    def height(self) -> int:
        """The rows of a cluster."""
        return self.groups * self.rows_a_thread

    @property
    def threads_a_group(self) -> int:
        return in_warps(self.width(max(self.widths)))

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


def in_warps(threads: int) -> int:
    """Returns the threads of the warps that have so many threads."""
    return -(-threads // _WARP) * _WARP
