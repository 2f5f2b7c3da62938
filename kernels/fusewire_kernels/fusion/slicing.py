"""Which launches take long, and how such a one may be run in pieces: along one of the dimensions that its kernel walks.

Every point of the outer dimensions is computed by itself, so where a piece begins and ends changes no bit: an element
of a product is one chain over k, whatever rows are computed with it. Loops are divided along the first dimension that
gives as many pieces as are wanted, or else along that which gives most; a product along its first, for its result lies
in that order. A piece is a step at least, so it takes longer than it is meant to where a step is long: a reduction of
few long rows, a product of wide matrices. Not divided are kernels without dimensions (a reduction of all elements) and
reductions to no more columns than are computed side by side; and none is along a dimension along which it asks where it
is.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import NamedTuple

from fusewire_kernels.codegen.kernel import LoopKernel, ProductKernel, Stride
from fusewire_kernels.fusion.lowering import Lowered
from fusewire_kernels.plan.plan import Cost, Division

PIECE_NS = 100_000  # what a piece is meant to take
VECTORS = 64  # of points that are computed side by side, a piece takes a multiple
PRODUCT_OPERATIONS = 8_000_000  # which a product does in about as long
PRODUCT_ROWS = 128  # of a product, a piece takes a multiple: each gathers the other operand anew


class _Dimension(NamedTuple):
    """One along which a launch may be divided: into pieces of a multiple of so many steps."""

    number: int
    extent: int
    multiple: int

    def steps(self, pieces: int) -> int:
        """Of each piece, if there are to be so many."""
        return -(-max(self.extent // pieces, 1) // self.multiple) * self.multiple

    def pieces(self, wanted: int) -> int:
        """How many there are if so many are wanted."""
        return min(-(-self.extent // self.steps(wanted)), wanted)


def division(lowered: Lowered) -> Division | None:
    """How the instances of a launch may be run in pieces; None if they cannot be, or take no longer than one."""
    wanted = _pieces(lowered)
    if wanted < 2:
        return None
    dimension = max(_dimensions(lowered), key=lambda each: each.pieces(wanted), default=None)  # the first of equals
    if dimension is None or dimension.pieces(wanted) < 2:
        return None
    return Division(dimension.number, dimension.steps(wanted), _moves_bytes(lowered, dimension.number))


def _pieces(lowered: Lowered) -> int:
    """How many should be made of an instance."""
    if isinstance(lowered.kernel, ProductKernel):
        return lowered.operations // PRODUCT_OPERATIONS
    return Cost(lowered.operations, lowered.moved_bytes).estimate_ns // PIECE_NS


def _dimensions(lowered: Lowered) -> Iterator[_Dimension]:
    kernel, sizes = lowered.kernel, lowered.sizes
    if isinstance(kernel, ProductKernel):
        yield _Dimension(0, sizes[0], 1 if kernel.batch_rank else PRODUCT_ROWS)
        return
    for number in range(kernel.rank):
        if not _asks_where(kernel, number):
            yield _Dimension(number, sizes[number], VECTORS if _is_vector(kernel, number) else 1)


def _asks_where(kernel: LoopKernel, dimension: int) -> bool:
    return any(node.op == "index" and node.detail == dimension for node in kernel.nodes)


def _is_vector(kernel: LoopKernel, dimension: int) -> bool:
    """Whether it is along this dimension that points are computed side by side."""
    if dimension < kernel.rank - 1 or (kernel.has_inner and not kernel.runs_along_columns):
        return False
    arguments = (*kernel.inputs, *[store.argument for store in kernel.stores])
    return any(argument.strides and argument.strides[dimension] is Stride.UNIT for argument in arguments)


def _moves_bytes(lowered: Lowered, dimension: int) -> tuple[int, ...]:
    """By how much a step along a dimension moves each argument."""
    kernel = lowered.kernel
    if isinstance(kernel, ProductKernel):
        return tuple([move * kernel.dtype.itemsize_bytes for move in _product_moves(kernel, lowered.sizes)])
    arguments = (*kernel.inputs, *[store.argument for store in kernel.stores])
    return tuple(
        [
            moves[dimension] * argument.dtype.itemsize_bytes if moves else 0
            for moves, argument in zip(lowered.strides, arguments, strict=True)
        ]
    )


def _product_moves(kernel: ProductKernel, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Of a, b and the result, along the first dimension: the first of the batch, or the rows."""
    rank = kernel.batch_rank
    extents, a_strides, b_strides = sizes[: rank + 3], sizes[rank + 3 : 2 * rank + 5], sizes[2 * rank + 5 :]
    results = prod(extents[1:-1])  # behind one step: `inner` is the last of the extents
    return a_strides[0], b_strides[0] if rank else 0, results
