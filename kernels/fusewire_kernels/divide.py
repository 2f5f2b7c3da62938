"""Which launches take long, and how such a one may be run in pieces: along the first dimension that its kernel walks.

Every point of the outer dimensions is computed by itself, so where a piece begins and ends changes no bit: an element
of a product is one chain over k, whatever rows are computed with it. A piece is a step at least, so it takes longer
than it is meant to where a step is long: a reduction of few long rows, a product of wide matrices. Not divided are
kernels without dimensions (a reduction of all elements), reductions to no more columns than are computed side by side,
and kernels that ask where along the first dimension they are.
"""

from __future__ import annotations

from math import prod

from fusewire_kernels.codegen.loops import runs_along_columns
from fusewire_kernels.kernel import LoopKernel, ProductKernel, Stride
from fusewire_kernels.lower import Lowered
from fusewire_kernels.plan import Cost, Division

PIECE_NS = 100_000  # what a piece is meant to take
VECTORS = 64  # of points that are computed side by side, a piece takes a multiple
PRODUCT_OPERATIONS = 8_000_000  # which a product does in about as long
PRODUCT_ROWS = 128  # of a product, a piece takes a multiple: each gathers the other operand anew


def division(lowered: Lowered) -> Division | None:
    """How the instances of a launch may be run in pieces; None if they cannot be, or take no longer than one."""
    pieces = _pieces(lowered)
    if pieces < 2:
        return None
    kernel = lowered.kernel
    if isinstance(kernel, ProductKernel):
        moves_bytes, multiple = _product_moves_bytes(kernel, lowered.sizes), 1 if kernel.batch_rank else PRODUCT_ROWS
    elif kernel.rank == 0 or _asks_where(kernel):
        return None
    else:
        moves_bytes, multiple = _moves_bytes(kernel, lowered.strides), VECTORS if _is_vector(kernel) else 1
    extent = lowered.sizes[0]
    steps = -(-max(extent // pieces, 1) // multiple) * multiple
    return Division(steps, moves_bytes) if steps < extent else None


def _pieces(lowered: Lowered) -> int:
    """How many should be made of an instance."""
    if isinstance(lowered.kernel, ProductKernel):
        return lowered.operations // PRODUCT_OPERATIONS
    return Cost(lowered.operations, lowered.moved_bytes).estimate_ns // PIECE_NS


def _product_moves_bytes(kernel: ProductKernel, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Of a, b and the result, along the first dimension of the batch, or along the rows where there is no batch."""
    rank = kernel.batch_rank
    extents, a_strides, b_strides = sizes[: rank + 3], sizes[rank + 3 : 2 * rank + 5], sizes[2 * rank + 5 :]
    results = prod(extents[1:-1])  # behind one step: `inner` is the last of the extents
    moves = (a_strides[0], b_strides[0] if rank else 0, results)
    return tuple([elements * kernel.dtype.itemsize_bytes for elements in moves])


def _asks_where(kernel: LoopKernel) -> bool:
    return any(node.op == "index" and node.detail == 0 for node in kernel.nodes)


def _is_vector(kernel: LoopKernel) -> bool:
    """Whether it is along the first dimension that points are computed side by side."""
    if kernel.rank > 1 or (kernel.has_inner and not runs_along_columns(kernel)):
        return False
    arguments = (*kernel.inputs, *[store.argument for store in kernel.stores])
    return any(argument.strides and argument.strides[0] is Stride.UNIT for argument in arguments)


def _moves_bytes(kernel: LoopKernel, strides: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    arguments = (*kernel.inputs, *[store.argument for store in kernel.stores])
    return tuple(
        [
            moves[0] * argument.dtype.itemsize_bytes if moves else 0
            for moves, argument in zip(strides, arguments, strict=True)
        ]
    )
