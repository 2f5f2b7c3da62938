"""Bounds the memory that an array library takes for a call of an op, beside its operands and its result. Pure.

The bounds are those of CuPy, which copies operands and results, and of the algorithms of cuSOLVER and cuFFT. What CuPy
14.2 on CUDA 13 took on an H200 is at most four fifths of them (`tests/kernels/ops/test_workspaces.py`). They follow
from the op, the dtype and the shapes alone. So a version of a library that takes far more fails by the op's name,
in place of taking the memory of other clients' values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod

from fusewire_kernels.ops.fourier import MOST_POINTS_AT_ONCE
from fusewire_protos.ops.op import Op
from fusewire_protos.ops.shapes import Spec

_Bound = Callable[[Sequence[Spec], Spec], int]  # (operands, result) -> bytes

# In elements, which are pairs for complex matrices.
_OF_A_CALL = 1 << 22  # what an algorithm takes however small the matrix is
_OF_A_MATRIX = 1 << 12  # what an algorithm for batches keeps of each
_OF_A_SIDE = 1 << 10  # the panels of blocked algorithms, for each row and column


def workspace_bytes(op: Op, operands: Sequence[Spec], result: Spec) -> int:
    """Returns the bound for a call of a library op on operands of these specs."""
    return WORKSPACES[op.name](operands, result)


def _of_matrices(times_operands: int, times_result: int, operands: Sequence[Spec], result: Spec) -> int:
    """Returns some times the operands and the result, and what the algorithm needs beside copies of them."""
    first = operands[0]
    *batch, rows, columns = first.shape
    elements = _OF_A_CALL + _OF_A_MATRIX * prod(batch) + _OF_A_SIDE * (rows + columns)
    copies = times_operands * sum(each.size_bytes for each in operands) + times_result * result.size_bytes
    return copies + elements * len(operands) * first.dtype.itemsize_bytes


def _of_lines(operands: Sequence[Spec], result: Spec) -> int:
    """Returns four times the result, and twelve times the complex numbers of the lines that are transformed at once.

    An algorithm for a prime number of points works on more than twice as many.
    """
    itemsize = result.dtype.itemsize_bytes
    *batch, points = max(operands[0].shape, result.shape, key=lambda shape: shape[-1])
    at_once = min(prod(batch) * points, max(MOST_POINTS_AT_ONCE, points))
    return 4 * result.size_bytes + 12 * 2 * itemsize * at_once + _OF_A_CALL * itemsize


# How often a call holds its operands and its result. Complex ops take both parts, so theirs are the same numbers.
_COPIES = {
    "cholesky": (6, 4),
    "slogdet": (5, 4),
    "qr": (8, 4),
    "eigh": (8, 4),
    "svd": (8, 4),
    "eig": (12, 4),
}

WORKSPACES: dict[str, _Bound] = {
    **{name: partial(_of_matrices, *copies) for name, copies in _COPIES.items()},
    **{f"complex_{name}": partial(_of_matrices, *copies) for name, copies in _COPIES.items()},
    "solve": partial(_of_matrices, 4, 4),
    "inv": partial(_of_matrices, 4, 4),
    "det": partial(_of_matrices, 5, 4),
    "eigvalsh": partial(_of_matrices, 10, 4),
    "eigvals": partial(_of_matrices, 12, 4),
    "svdvals": partial(_of_matrices, 10, 4),
    **dict.fromkeys(("fft", "rfft", "irfft"), _of_lines),
}
