"""Generates the sources of persistent kernels, which run all iterations of a loop in one launch, in CUDA. Pure.

`blockIdx.z` is the number of the row. Rows may have different numbers of iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from fusewire_kernels.codegen.persistent.cluster import cluster_text
from fusewire_kernels.codegen.persistent.points import POINT_THREADS, points_text
from fusewire_kernels.ir.cluster_shape import THREADS
from fusewire_kernels.ir.persistent import PersistentKernel, PersistentPoints
from fusewire_kernels.plan.plan import KernelSource

_MOST_POINT_BLOCKS = 1 << 16


class PersistentGrid(NamedTuple):
    """The blocks of a row, the threads and the shared memory of a block, and the clusters (see `PersistentLaunch`)."""

    blocks: int
    threads: int
    shared_bytes: int
    clusters: int
    most_in_turn: int


def persistent_source(kernel: PersistentKernel) -> KernelSource:
    """Returns the source of a persistent kernel, in CUDA."""
    text = points_text(kernel) if isinstance(kernel, PersistentPoints) else cluster_text(kernel)
    return KernelSource(kernel.key, text)


def persistent_grid(kernel: PersistentKernel, sizes: Sequence[int]) -> PersistentGrid:
    """Returns the grid of a persistent kernel for the sizes of its body."""
    if isinstance(kernel, PersistentPoints):
        blocks = -(-prod(sizes[: kernel.body.rank]) // POINT_THREADS)
        return PersistentGrid(max(1, min(blocks, _MOST_POINT_BLOCKS)), POINT_THREADS, 0, clusters=0, most_in_turn=0)
    shape = kernel.shape
    blocks = shape.clusters * shape.blocks
    return PersistentGrid(blocks, THREADS, shape.shared_bytes, shape.clusters, shape.most_in_turn)
