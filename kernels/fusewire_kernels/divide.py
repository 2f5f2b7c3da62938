"""Which launches take long, and how such a one may be run in pieces: along the first dimension that its kernel walks.

Every point of the outer dimensions is computed by itself, so where a piece begins and ends changes no bit. Not
divided are products, which gather their operand anew in each call, and kernels that ask where along it they are.
"""

from __future__ import annotations

from fusewire_kernels.kernel import LoopKernel, Stride
from fusewire_kernels.lower import Lowered
from fusewire_kernels.plan import Cost, Division

PIECE_NS = 100_000  # what a piece is meant to take
VECTORS = 64  # of points that are computed side by side, a piece takes a multiple


def division(lowered: Lowered) -> Division | None:
    """How the instances of a launch may be run in pieces; None if they cannot be, or take no longer than one."""
    pieces = _pieces(lowered)
    if pieces < 2:
        return None
    kernel = lowered.kernel
    if not isinstance(kernel, LoopKernel) or kernel.rank == 0 or _asks_where(kernel):
        return None
    extent = lowered.sizes[0]
    steps = max(extent // pieces, 1)
    if kernel.rank == 1 and _is_contiguous(kernel):
        steps = -(-steps // VECTORS) * VECTORS
    return Division(steps, _moves_bytes(kernel, lowered.strides)) if steps < extent else None


def _pieces(lowered: Lowered) -> int:
    """How many should be made of an instance."""
    return Cost(lowered.operations, lowered.moved_bytes).estimate_ns // PIECE_NS


def _asks_where(kernel: LoopKernel) -> bool:
    return any(node.op == "index" and node.detail == 0 for node in kernel.nodes)


def _is_contiguous(kernel: LoopKernel) -> bool:
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
