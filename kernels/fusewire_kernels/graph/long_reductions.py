"""Decides which reductions are done in two steps, and finds the elements of each step. Pure.

One worker reduces a row of elements to one result. If the rows are few and long, most of a device would wait for a few
workers. So such a reduction first reduces each chunk of a row, and then the results of the chunks. The order of
summation is that of the reduction in one step (see `ops.order`). The decision depends only on the lengths, so an op has
the same bits wherever it is computed. A reduction to a position finds each chunk's best element and its position. Then
it takes the first of the positions in the chunks whose best element is the best of all.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from fusewire_kernels.graph.views import Layout
from fusewire_kernels.ops.order import CHUNK
from fusewire_protos.ops.shapes import Shape

LONG = 1 << 16  # elements; one block of threads takes longer for them than a second launch takes
_FEW = 16  # results


class Chunks(NamedTuple):
    """The elements of a reduction, with one axis where the reduced axes were.

    `whole` are the elements of all whole chunks. There the axis `axis` counts the chunks, and the axis behind it counts
    the elements of a chunk. `rest` are the elements behind the whole chunks, as one shorter chunk, or None.
    """

    axis: int
    whole: Layout
    rest: Layout | None


def chunks(layout: Layout, axes: Shape) -> Chunks | None:
    """Returns the chunks of a reduction, or None if it is done in one step.

    The reduced axes are one strided dimension, both in `layout` and in its row-major order.
    """
    extent = prod(layout.shape[axis] for axis in axes)
    results = prod(layout.shape) // max(extent, 1)
    if extent <= LONG or results >= _FEW:
        return None
    long_axes = [axis for axis in axes if layout.shape[axis] > 1]
    first, last = long_axes[0], long_axes[-1]
    count, left = divmod(extent, CHUNK)
    step = layout.strides[last]

    def part(chunk_count: int, length: int, skipped: int) -> Layout:
        dims, strides = (chunk_count, length), (step * CHUNK if chunk_count > 1 else 0, step if length > 1 else 0)
        return Layout(
            (*layout.shape[:first], *dims, *layout.shape[last + 1 :]),
            (*layout.strides[:first], *strides, *layout.strides[last + 1 :]),
            layout.offset + skipped * step,
            layout.moves,
        )

    return Chunks(first, part(count, CHUNK, 0), part(1, left, count * CHUNK) if left else None)
