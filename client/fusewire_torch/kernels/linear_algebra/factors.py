"""Matrices as products of triangles and reflections: LU with rows exchanged, and QR by Householder's reflections.

A column is eliminated by ops over the whole matrix, chosen by the column's number. So all columns have the same ops, of
which the recorder makes a loop. (Golub and Van Loan, Matrix Computations, 4th edition, algorithms 3.4.1 and 5.2.1.)
"""

from __future__ import annotations

from typing import Any

import torch

import fusewire as fw
from fusewire import Array
from fusewire_torch.kernels.linear_algebra.linalg import adjoint_of, solved
from fusewire_torch.storage import array_of
from fusewire_torch.table import Table

TABLE = Table()


@TABLE.value("linalg_lu_factor_ex")
def _lu_factor_ex(x: torch.Tensor, *, pivot: bool = True, check_errors: bool = False) -> tuple[Array, Array, Array]:
    """Returns L below U, the exchanged rows counted from one, and 0 or the number of the first zero on the diagonal."""
    _check_matrices(x, "linalg.lu_factor_ex")
    factors, pivots = _eliminated(array_of(x), pivot)
    count = min(x.shape[-2:])
    is_zero = fw.linalg.diagonal(factors) == 0
    if not count:
        return factors, pivots, fw.zeros(x.shape[:-2], "int32", device=factors.session)
    first = fw.argmax(is_zero.astype("int32"), axis=-1) + 1
    return factors, pivots, fw.where(fw.any(is_zero, axis=-1), first, 0).astype("int32")


def _eliminated(matrix: Array, pivot: bool) -> tuple[Array, Array]:
    rows, columns = matrix.shape[-2:]
    count = min(rows, columns)
    row = fw.arange(rows, device=matrix.session)
    column = fw.arange(columns, device=matrix.session)
    pivots = fw.zeros((*matrix.shape[:-2], count), "int64", device=matrix.session)
    numbers = fw.arange(count, device=matrix.session)
    for k in range(count):
        lead = _column(matrix, column, k)
        size = fw.abs(fw.real(lead)) + fw.abs(fw.imag(lead))  # by which LAPACK compares complex numbers too
        candidates = fw.where(row >= k, size, -1.0)
        place = fw.argmax(candidates, axis=-1, keepdims=True) if pivot else fw.zeros_like(pivots[..., :1]) + k
        pivots = fw.where(numbers == k, place + 1, pivots)
        matrix = fw.take_along_axis(matrix, fw.expand_dims(_exchanged(row, place, k), -1), axis=-2)
        lead = _row(matrix, row, k)
        divisor = fw.expand_dims(_column(lead, column, k), -1)
        is_zero = divisor == 0
        factor = fw.where(fw.logical_and(row > k, fw.logical_not(is_zero)), _column(matrix, column, k), 0.0)
        factor = fw.expand_dims(factor / fw.where(is_zero, 1.0, divisor), -1)
        rest = matrix - factor * fw.expand_dims(fw.where(column > k, lead, 0.0), -2)
        is_factor = fw.logical_and(fw.expand_dims(row, -1) > k, column == k)
        matrix = fw.where(fw.logical_and(is_factor, fw.expand_dims(fw.logical_not(is_zero), -1)), factor, rest)
    return matrix, pivots.astype("int32")


def _column(matrix: Array, column: Array, k: int) -> Any:
    return fw.sum(fw.where(column == k, matrix, 0.0), axis=-1)


def _row(matrix: Array, row: Array, k: int) -> Any:
    return fw.sum(fw.where(fw.expand_dims(row, -1) == k, matrix, 0.0), axis=-2)


def _exchanged(row: Array, place: Array, k: int) -> Any:
    """Returns the numbers of the rows with those of k and of `place` exchanged."""
    return fw.where(row == k, place, fw.where(row == place, k, row))


def _permutation(pivots: Array, rows: int) -> Array:
    """Returns the order in which exchanges leave the rows."""
    row = fw.arange(rows, device=pivots.session)
    order: Any = fw.broadcast_to(row, (*pivots.shape[:-1], rows))
    for k in range(pivots.shape[-1]):
        place = pivots[..., k : k + 1].astype("int64") - 1
        order = fw.take_along_axis(order, fw.broadcast_to(_exchanged(row, place, k), order.shape), axis=-1)
    return fw.asarray(order)


def _parts(factors: Array, pivots: Array) -> tuple[Array, Array, Array]:
    """Returns P, L and U, whose product is the matrix."""
    rows, columns = factors.shape[-2:]
    count = min(rows, columns)
    ones = fw.eye(rows, count, dtype=factors.dtype, device=factors.session)
    lower = fw.tril(factors[..., :count], k=-1) + ones
    upper = fw.triu(factors[..., :count, :])
    order = _permutation(pivots, rows)
    row = fw.expand_dims(fw.arange(rows, device=factors.session), -1)
    return (row == fw.expand_dims(order, -2)).astype(factors.dtype), lower, upper


@TABLE.value("linalg_lu")
def _lu(x: torch.Tensor, *, pivot: bool = True) -> tuple[Array, Array, Array]:
    _check_matrices(x, "linalg.lu")
    factors, pivots = _eliminated(array_of(x), pivot)
    permutation, lower, upper = _parts(factors, pivots)
    if not pivot:
        permutation = fw.zeros((0,), factors.dtype, device=factors.session)
    return permutation, lower, upper


@TABLE.value("lu_unpack")
def _lu_unpack(
    factors: torch.Tensor, pivots: torch.Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Array, Array, Array]:
    if unpack_pivots and pivots.dtype is not torch.int32:
        raise RuntimeError("torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.")
    parts = _parts(array_of(factors), array_of(pivots))
    nothing = fw.zeros((0,), array_of(factors).dtype, device=array_of(factors).session)
    is_wanted = (unpack_pivots, unpack_data, unpack_data)
    first, second, third = (part if each else nothing for part, each in zip(parts, is_wanted, strict=True))
    return first, second, third


@TABLE.value("linalg_lu_solve")
def _lu_solve(
    lu: torch.Tensor, pivots: torch.Tensor, b: torch.Tensor, *, left: bool = True, adjoint: bool = False
) -> Array:
    """Solves with the matrix of a decomposition, or with the matrix itself if that is in its place (see `linalg`)."""
    matrix = array_of(lu)
    if pivots.dtype is not torch.int64:
        permutation, lower, upper = _parts(matrix, array_of(pivots))
        matrix = permutation @ (lower @ upper)
    return solved(adjoint_of(matrix) if adjoint else matrix, array_of(b), left)


@TABLE.value("geqrf")
def _geqrf(x: torch.Tensor) -> tuple[Array, Array]:
    """Returns R above the vectors of reflections I − tau v vᴴ, whose first elements are ones and left out, and tau."""
    _check_matrices(x, "torch.geqrf")
    matrix = array_of(x)
    rows, columns = matrix.shape[-2:]
    row = fw.arange(rows, device=matrix.session)
    column = fw.arange(columns, device=matrix.session)
    factors = []
    for k in range(min(rows, columns)):
        below = fw.where(row >= k, _column(matrix, column, k), 0.0)
        first = fw.expand_dims(_column(below, row, k), -1)
        rest = fw.where(row > k, below, 0.0)
        tail = fw.sum(fw.square(fw.abs(rest)), axis=-1, keepdims=True)
        size = fw.sqrt(fw.square(fw.abs(first)) + tail)
        is_done = fw.logical_and(tail == 0, fw.imag(first) == 0)
        beta = fw.where(fw.real(first) > 0, -size, size)
        divisor = fw.where(is_done, 1.0, first - beta)
        tau = fw.where(is_done, 0.0, (beta - first) / fw.where(is_done, 1.0, beta))
        vector = fw.expand_dims(fw.where(row == k, 1.0, rest / divisor), -1)
        changed = matrix - fw.conj(fw.expand_dims(tau, -1)) * (vector @ (adjoint_of(vector) @ matrix))
        matrix = fw.where(column >= k, changed, matrix)
        is_vector = fw.logical_and(fw.expand_dims(row, -1) > k, column == k)
        matrix = fw.where(is_vector, vector, matrix)
        factors.append(tau)
    nothing = fw.zeros((*matrix.shape[:-2], 0), matrix.dtype, device=matrix.session)
    return matrix, fw.concat(factors, axis=-1) if factors else nothing


@TABLE.value("ormqr")
def _ormqr(
    x: torch.Tensor, tau: torch.Tensor, other: torch.Tensor, left: bool = True, transpose: bool = False
) -> Array:
    """Multiplies with the product of all reflections, or with its adjoint, from one side."""
    matrix, factors, result = array_of(x), array_of(tau), array_of(other)
    rows = matrix.shape[-2]
    ones = fw.eye(rows, matrix.shape[-1], dtype=matrix.dtype, device=matrix.session)
    vectors = fw.tril(matrix, k=-1) + ones
    count = factors.shape[-1]
    for number in range(count) if left == transpose else reversed(range(count)):
        v, factor = vectors[..., number : number + 1], fw.expand_dims(factors[..., number : number + 1], -1)
        factor = fw.conj(factor) if transpose else factor
        if left:
            result = result - factor * (v @ (adjoint_of(v) @ result))
        else:
            result = result - factor * ((result @ v) @ adjoint_of(v))
    return result


def _check_matrices(x: torch.Tensor, name: str) -> None:
    if x.dim() < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
