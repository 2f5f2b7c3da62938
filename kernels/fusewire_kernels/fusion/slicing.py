"""Decides which launches take long enough to run in pieces, and along which dimension of the kernel they are divided.

A kernel computes each point of its outer dimensions independently of the others, so the borders of a piece change no
bit. For example, an element of a product is one chain of fma operations over k, and no other row changes it.
A kernel of loops is divided along the first dimension that gives as many pieces as are wanted, or else along the
dimension that gives most pieces. A product is divided along its first dimension, because its result lies in that order.

A piece is at least one step of the dimension. So a piece takes longer than intended if one step takes long, as in a
reduction of few long rows or in a product of wide matrices. Three kinds of division are impossible:

- A kernel without outer dimensions is not divided. An example is `argmax` of all elements.
- A reduction to columns is not divided if the kernel computes all the columns side by side.
- A kernel that computes with positions along a dimension is not divided along that dimension.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from fusewire_kernels.codegen.kernel import LoopKernel, ProductKernel, Stride
from fusewire_kernels.fusion.lowering import Lowered
from fusewire_kernels.plan.plan import Cost, Division

PIECE_NS = 100_000  # the intended time of a piece
VECTORS = 64  # a piece is a multiple of this many points along a dimension that is computed side by side
PRODUCT_OPERATIONS = 8_000_000  # operations of a piece of a product; these take about `PIECE_NS`
PRODUCT_ROWS = 128  # a piece of a product is a multiple of this many rows, because each piece copies matrix b again


class _Dimension(NamedTuple):
    """A dimension along which a launch may be divided. Each piece but the last has a multiple of `multiple` steps."""

    number: int
    extent: int
    multiple: int

    def steps(self, pieces: int) -> int:
        """Returns the number of steps of each piece if there are to be about `pieces` pieces."""
        return -(-max(self.extent // pieces, 1) // self.multiple) * self.multiple

    def pieces(self, wanted: int) -> int:
        """Returns the number of pieces that result if `wanted` pieces are wanted, at most `wanted`."""
        return min(-(-self.extent // self.steps(wanted)), wanted)


def division(lowered: Lowered) -> Division | None:
    """Returns the division of each instance of a launch into pieces.

    Returns None if the launch cannot be divided, or if an instance takes less time than two pieces.
    """
    wanted = _pieces(lowered)
    if wanted < 2:
        return None
    # `max` returns the first of several equal dimensions.
    dimension = max(_dimensions(lowered), key=lambda each: each.pieces(wanted), default=None)
    if dimension is None or dimension.pieces(wanted) < 2:
        return None
    return Division(dimension.number, dimension.steps(wanted), _moves_bytes(lowered, dimension.number))


def _pieces(lowered: Lowered) -> int:
    """Returns the number of pieces into which an instance should be divided."""
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
    """Returns whether the kernel computes with positions along a dimension.

    Such positions would begin at 0 in each piece.
    """
    return any(node.op == "index" and node.detail == dimension for node in kernel.nodes)


def _is_vector(kernel: LoopKernel, dimension: int) -> bool:
    """Returns whether the kernel computes points along this dimension side by side."""
    if dimension < kernel.rank - 1 or (kernel.has_inner and not kernel.runs_along_columns):
        return False
    arguments = (*kernel.inputs, *[store.argument for store in kernel.stores])
    return any(argument.strides and argument.strides[dimension] is Stride.UNIT for argument in arguments)


def _moves_bytes(lowered: Lowered, dimension: int) -> tuple[int, ...]:
    """Returns for each argument the bytes by which one step along a dimension moves the argument."""
    kernel = lowered.kernel
    if isinstance(kernel, ProductKernel):
        argument_dtypes = kernel.argument_dtypes
    else:
        arguments = (*kernel.inputs, *[store.argument for store in kernel.stores])
        argument_dtypes = tuple([argument.dtype for argument in arguments])
    return tuple(
        [
            moves[dimension] * dtype.itemsize_bytes if moves else 0
            for moves, dtype in zip(lowered.strides, argument_dtypes, strict=True)
        ]
    )
