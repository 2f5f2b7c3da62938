"""Linear algebra. Matrices lie along the last two axes.

PyTorch's solvers return an LU decomposition too, which its gradients solve with. Fusewire's solvers keep theirs to
themselves; in place of it stands the matrix itself, and pivots in int64, which no decomposition has, say so.
"""

from __future__ import annotations

from typing import Any

import torch

import fusewire as fw
from fusewire import Array
from fusewire_torch.storage import array_of
from fusewire_torch.table import Table

TABLE = Table()

_TAYLOR_TERMS = 18
_MOST_SQUARINGS = 16
# The greatest norm for which the next term is less than the last bit: Bader, Blanes and Casas, 2019.
_TAYLOR_NORM, _TAYLOR_NORM_OF_FLOAT64 = 3.010066362817634, 1.090863719290036


@TABLE.value("linalg_cholesky_ex")
def _cholesky_ex(x: torch.Tensor, *, upper: bool = False, check_errors: bool = False) -> tuple[Array, Array]:
    result = _cholesky(x, upper)
    return result, _failures(result)


@TABLE.value("cholesky")
def _cholesky(x: torch.Tensor, upper: bool = False) -> Array:
    _check_square(x, "linalg.cholesky")
    return fw.linalg.cholesky(array_of(x), upper=upper)


@TABLE.value("_cholesky_solve_helper")
def _cholesky_solve(b: torch.Tensor, factor: torch.Tensor, upper: bool) -> Array:
    return fw.linalg.solve(_product_of(array_of(factor), upper), array_of(b))


@TABLE.value("cholesky_inverse")
def _cholesky_inverse(factor: torch.Tensor, upper: bool = False) -> Array:
    _check_square(factor, "cholesky_inverse")
    return fw.linalg.inv(_product_of(array_of(factor), upper))


def _product_of(factor: Array, upper: bool) -> Array:
    """Returns the matrix that has this Cholesky factor. Only the factor's triangle counts."""
    if upper:
        triangle = fw.triu(factor)
        return adjoint_of(triangle) @ triangle
    triangle = fw.tril(factor)
    return triangle @ adjoint_of(triangle)


def adjoint_of(matrix: Array) -> Array:
    """Returns the conjugates of the transpose."""
    return fw.conj(fw.matrix_transpose(matrix))


@TABLE.value("linalg_inv_ex")
def _inv_ex(x: torch.Tensor, *, check_errors: bool = False) -> tuple[Array, Array]:
    _check_square(x, "linalg.inv")
    result = fw.linalg.inv(array_of(x))
    return result, _failures(result)


@TABLE.value("_linalg_solve_ex")
def _solve_ex(
    a: torch.Tensor, b: torch.Tensor, *, left: bool = True, check_errors: bool = False
) -> tuple[Array, Array, Array, Array]:
    _check_square(a, "linalg.solve")
    is_vector = b.dim() == 1 or (a.dim() - 1 == b.dim() and tuple(b.shape) == tuple(a.shape[:-1]))
    matrix, right = array_of(a), array_of(b)
    if is_vector:
        right = fw.expand_dims(right, -1)
    result = solved(matrix, right, left)
    return (fw.squeeze(result, -1) if is_vector else result), matrix, _no_pivots(matrix), _failures(result)


def solved(a: Array, b: Array, left: bool) -> Array:
    if left:
        return fw.linalg.solve(a, b)
    return fw.matrix_transpose(fw.linalg.solve(fw.matrix_transpose(a), fw.matrix_transpose(b)))


def _undecomposed(x: torch.Tensor, matrix: Array) -> tuple[Array, Array]:
    """Returns LU and pivots of a determinant. PyTorch takes those of contiguous real matrices for the transpose's."""
    is_transposed = x.is_contiguous() and not x.is_complex()
    return fw.matrix_transpose(matrix) if is_transposed else matrix, _no_pivots(matrix)


def _no_pivots(matrix: Array) -> Array:
    return fw.zeros(matrix.shape[:-1], "int64", device=matrix.session)


@TABLE.value("_linalg_det")
def _det(x: torch.Tensor) -> tuple[Array, Array, Array]:
    _check_square(x, "linalg.det")
    matrix = array_of(x)
    return fw.linalg.det(matrix), *_undecomposed(x, matrix)


@TABLE.value("_linalg_slogdet")
def _slogdet(x: torch.Tensor) -> tuple[Array, Array, Array, Array]:
    _check_square(x, "linalg.slogdet")
    matrix = array_of(x)
    sign, logarithm = fw.linalg.slogdet(matrix)
    return sign, logarithm, *_undecomposed(x, matrix)


@TABLE.value("linalg_qr")
def _qr(x: torch.Tensor, mode: str = "reduced") -> tuple[Array, Array]:
    matrix = array_of(x)
    if mode == "r":
        return fw.zeros((0,), matrix.dtype, device=matrix.session), fw.linalg.qr(matrix, mode="r")
    q, r = fw.linalg.qr(matrix, mode="complete" if mode == "complete" else "reduced")
    return q, r


@TABLE.value("_linalg_svd")
def _svd(
    x: torch.Tensor, full_matrices: bool = False, compute_uv: bool = True, *, driver: str | None = None
) -> tuple[Array, Array, Array]:
    matrix = array_of(x)
    if not compute_uv:
        nothing = fw.zeros((0,), matrix.dtype, device=matrix.session)
        return nothing, fw.linalg.svdvals(matrix), nothing
    u, s, vh = fw.linalg.svd(matrix, full_matrices=full_matrices)
    return u, s, vh


@TABLE.value("_linalg_eigh")
def _eigh(x: torch.Tensor, UPLO: str = "L", compute_v: bool = True) -> tuple[Array, Array]:  # noqa: N803 - PyTorch's
    _check_square(x, "linalg.eigh")
    matrix = array_of(x)
    triangle: Any = UPLO.upper()
    if not compute_v:
        nothing = fw.zeros((0,), matrix.dtype, device=matrix.session)
        return fw.linalg.eigvalsh(matrix, UPLO=triangle), nothing
    values, vectors = fw.linalg.eigh(matrix, UPLO=triangle)
    return values, vectors


@TABLE.value("linalg_eig")
def _eig(x: torch.Tensor) -> tuple[Array, Array]:
    _check_square(x, "linalg.eig")
    values, vectors = fw.linalg.eig(array_of(x))
    return values, vectors


@TABLE.value("_linalg_eigvals")
def _eigvals(x: torch.Tensor) -> Array:
    _check_square(x, "linalg.eigvals")
    return fw.linalg.eigvals(array_of(x))


@TABLE.value("linalg_solve_triangular")
def _solve_triangular(
    a: torch.Tensor, b: torch.Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Array:
    return solved(_triangle(a, upper, unitriangular), array_of(b), left)


@TABLE.value("triangular_solve")
def _triangular_solve(
    b: torch.Tensor, a: torch.Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Array, Array]:
    matrix = _triangle(a, upper, unitriangular)
    result = fw.linalg.solve(fw.matrix_transpose(matrix) if transpose else matrix, array_of(b))
    return result, fw.broadcast_to(array_of(a), (*result.shape[:-2], *a.shape[-2:]))


def _triangle(a: torch.Tensor, upper: bool, unitriangular: bool) -> Array:
    """Returns a triangle of a matrix, whose diagonal is taken for ones if it is unitriangular."""
    _check_square(a, "linalg.solve_triangular")
    matrix = fw.triu(array_of(a)) if upper else fw.tril(array_of(a))
    if not unitriangular:
        return matrix
    ones = fw.eye(a.shape[-1], dtype=matrix.dtype, device=matrix.session)
    return fw.where(ones != 0, ones, matrix)


@TABLE.value("linalg_lstsq")
def _lstsq(
    a: torch.Tensor, b: torch.Tensor, rcond: float | None = None, *, driver: str | None = None
) -> tuple[Array, Array, Array, Array]:
    """Returns the solution, the squares of what is left for each column, the rank and the singular values.

    As PyTorch has it, the driver "gelsy", which is the default, returns no squares, "gels" no rank, and only those of
    singular values return these. Squares of matrices without full rank are returned too: to know them needs a wait.
    """
    if a.dim() < 2:
        raise RuntimeError("torch.linalg.lstsq: input must have at least 2 dimensions.")
    matrix, right = array_of(a), array_of(b)
    is_vector = a.dim() - 1 == b.dim() and tuple(b.shape) == tuple(a.shape[:-1])
    if is_vector:
        right = fw.expand_dims(right, -1)
    found = fw.linalg.pinv(matrix, rcond) @ right
    nothing = fw.zeros((0,), matrix.dtype, device=matrix.session)
    rank, singular = fw.zeros((0,), "int64", device=matrix.session), fw.abs(nothing)
    if driver != "gels":
        values = fw.linalg.svdvals(matrix)
        cutoff = torch.finfo(a.dtype).eps * max(a.shape[-2:]) if rcond is None else rcond
        rank = fw.sum(values > cutoff * values[..., :1], axis=-1).astype("int64")
        singular = values if driver in ("gelsd", "gelss") else singular
    left = fw.abs(nothing)
    if a.shape[-2] > a.shape[-1] and driver not in (None, "gelsy"):
        rest = matrix @ found - right
        left = fw.sum(fw.square(fw.abs(rest)), axis=-2)
    return (fw.squeeze(found, -1) if is_vector else found), left, rank, singular


@TABLE.value("linalg_householder_product")
def _householder_product(x: torch.Tensor, tau: torch.Tensor) -> Array:
    """Returns the first columns of the product of reflections I - tau v v.H, of which `x` has the v below ones."""
    matrix, factors = array_of(x), array_of(tau)
    rows, columns = matrix.shape[-2:]
    result = fw.eye(rows, columns, dtype=matrix.dtype, device=matrix.session)
    result = fw.broadcast_to(result, matrix.shape)
    ones = fw.eye(rows, columns, dtype=matrix.dtype, device=matrix.session)
    vectors = fw.tril(matrix, k=-1) + ones
    for number in reversed(range(factors.shape[-1])):
        v = vectors[..., number : number + 1]
        factor = fw.expand_dims(factors[..., number : number + 1], -1)
        result = result - factor * (v @ (adjoint_of(v) @ result))
    return result


@TABLE.value("linalg_matrix_exp")
def _matrix_exp(x: torch.Tensor) -> Array:
    """Returns exp of matrices by scaling and squaring (Higham, 2005), with Taylor's series for small norms.

    A matrix is squared as often as its norm has doublings, at most 16: of a greater norm digits are lost.
    """
    _check_square(x, "linalg.matrix_exp")
    matrix = array_of(x)
    if not matrix.size:
        return matrix
    norm = fw.max(fw.sum(fw.abs(matrix), axis=-2, keepdims=True), axis=-1, keepdims=True)
    small = _TAYLOR_NORM_OF_FLOAT64 if x.dtype is torch.float64 else _TAYLOR_NORM
    doublings = fw.clip(fw.ceil(fw.log2(fw.maximum(norm / small, 1.0))), 0, _MOST_SQUARINGS)
    scaled = matrix / fw.exp2(doublings)
    one = fw.eye(x.shape[-1], dtype=matrix.dtype, device=matrix.session)
    result: Array = fw.broadcast_to(one, matrix.shape)
    for number in range(_TAYLOR_TERMS, 0, -1):
        result = one + scaled @ result / number
    for number in range(_MOST_SQUARINGS):
        result = fw.where(doublings > number, result @ result, result)
    return result


def _failures(result: Array) -> Array:
    """Returns for each matrix 1 if its algorithm has failed, which gives NaN, else 0."""
    return fw.any(fw.isnan(result), axis=(-2, -1)).astype("int32")


def _check_square(x: torch.Tensor, name: str) -> None:
    if x.dim() < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    if x.shape[-1] != x.shape[-2]:
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but they are {x.shape[-2]} by {x.shape[-1]} matrices"
        )
