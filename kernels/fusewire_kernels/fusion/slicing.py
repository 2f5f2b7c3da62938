"""Decides which launches take long enough to be run in pieces, and along which dimension of the kernel.

A kernel computes every point of its outer dimensions independently, so the borders of a piece change no bit: an element
of a product is one chain over k, whatever rows are computed with it. Loops are divided along the first dimension that
gives as many pieces as are wanted, or else along the dimension that gives most. A product is divided along its first
dimension, because its result lies in that order.

A piece is one step of the dimension at least. So a piece takes longer than intended where one step takes long: a
reduction of few long rows, a product of wide matrices. Three things are not divided: kernels without dimensions (a
reduction of all elements), reductions to no more columns than are computed side by side, and any kernel along a
dimension whose positions it computes with.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import NamedTuple

from fusewire_kernels.codegen.kernel import LoopKernel, ProductKernel, Stride
from fusewire_kernels.fusion.lowering import Lowered
from fusewire_kernels.plan.plan import Cost, Division

PIECE_NS = 100_000  # the intended time of a piece
VECTORS = 64  # along a dimension whose points are computed side by side, a piece is a multiple of this
PRODUCT_OPERATIONS = 8_000_000  # of a piece of a product: about `PIECE_NS`
PRODUCT_ROWS = 128  # a piece of a product is a multiple of this: every piece copies the matrix b again


class _Dimension(NamedTuple):
    """A dimension along which a launch may be divided; the steps of a piece are a multiple of `multiple`."""

    number: int
    extent: int
    multiple: int

    def steps(self, pieces: int) -> int:
        """The steps of each piece, to get about `pieces` of them."""
        return -(-max(self.extent // pieces, 1) // self.multiple) * self.multiple

    def pieces(self, wanted: int) -> int:
        """The number of pieces that there are if `wanted` are wanted."""
        return min(-(-self.extent // self.steps(wanted)), wanted)


def division(lowered: Lowered) -> Division | None:
    """The division of a launch into pieces; None if there is none, or if an instance takes no longer than one piece."""
    wanted = _pieces(lowered)
    if wanted < 2:
        return None
    # `max` gives the first of equals.
    dimension = max(_dimensions(lowered), key=lambda each: each.pieces(wanted), default=None)
    if dimension is None or dimension.pieces(wanted) < 2:
        return None
    return Division(dimension.number, dimension.steps(wanted), _moves_bytes(lowered, dimension.number))


def _pieces(lowered: Lowered) -> int:
    """The number of pieces into which an instance should be divided."""
    if isinstance(lowered.kernel, ProductKernel):
        return lowered.operations // PRODUCT_OPERATIONS
    return Cost(lowered.operations, lowered.moved_bytes).estimate_ns // PIECE_NS


def _dimensions(lowered: Lowered) -> Iterator[_Dimension]:
    kernel, sizes = lowered.kernel, lowered.sizes
    if isinstance(kernel, ProductKernel):
        yield _Dimension(0, sizes[0], 1 if kernel.batch_rank else PRODUCT_ROWS)
        return
    for number in range(kernel.rank):
        if not _uses_position(kernel, number):
            yield _Dimension(number, sizes[number], VECTORS if _is_vector(kernel, number) else 1)


def _uses_position(kernel: LoopKernel, dimension: int) -> bool:
    """Whether the kernel computes with positions along a dimension: those would begin at 0 in every piece."""
    return any(node.op == "index" and node.detail == dimension for node in kernel.nodes)


def _is_vector(kernel: LoopKernel, dimension: int) -> bool:
    """Whether points along this dimension are computed side by side."""
    if dimension < kernel.rank - 1 or (kernel.has_inner and not kernel.runs_along_columns):
        return False
    arguments = (*kernel.inputs, *[store.argument for store in kernel.stores])
    return any(argument.strides and argument.strides[dimension] is Stride.UNIT for argument in arguments)


def _moves_bytes(lowered: Lowered, dimension: int) -> tuple[int, ...]:
    """The bytes by which one step along a dimension moves each argument."""
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
    """The elements by which one step moves a, b and the result, along the first batch dimension or else the rows."""
    rank = kernel.batch_rank
    extents, a_strides, b_strides = sizes[: rank + 3], sizes[rank + 3 : 2 * rank + 5], sizes[2 * rank + 5 :]
    results = prod(extents[1:-1])  # elements of the result in one step; the last extent is `inner`
    return a_strides[0], b_strides[0] if rank else 0, results
