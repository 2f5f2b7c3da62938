"""Linear equations, inverses, determinants, and what follows from them."""

from __future__ import annotations

import operator
from math import prod
from string import ascii_letters
from typing import Any, NamedTuple, SupportsIndex

import numpy as np

from fusewire._api.array import Array
from fusewire._api.catalogue.catalogued import abs as size_of
from fusewire._api.catalogue.catalogued import any as any_of
from fusewire._api.functions.arrangement.matrices import diag
from fusewire._api.functions.elementwise.choices import where
from fusewire._api.functions.products.contraction import einsum
from fusewire._api.linalg.decompositions import real_of, svd, svdvals
from fusewire._api.linalg.norms import norm
from fusewire._api.ops.filled import filled
from fusewire._api.ops.operands import array_beside, arrays_of, asarray
from fusewire._api.ops.operations import broadcast_to
from fusewire._api.ops.several_results import apply_for_several
from fusewire._errors import ArgumentError, ShapeError
from fusewire._recording.record_op import apply, apply_to_one
from fusewire_protos.ops import shapes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.rules.linear_algebra import square


class SlogdetResult(NamedTuple):
    """What `slogdet` returns: `sign * exp(logabsdet)` is the determinant."""

    sign: Array
    logabsdet: Array


def solve(x1: Any, x2: Any, /) -> Array:
    """Returns the solution y of x1 @ y = x2 for matrices [..., n, n] and a vector [n] or right sides [..., n, k].

    The axes before the last two broadcast. Singular matrices give NaN.
    """
    a, b = arrays_of(x1, x2)
    if b.ndim == 1:
        return solve(a, b[:, None])[..., 0]
    if min(a.ndim, b.ndim) < 2:
        raise ShapeError(f"solve takes matrices, not the shapes {a.shape} and {b.shape}")
    batch = shapes.broadcast(a.shape[:-2], b.shape[:-2])
    operands = [broadcast_to(each, (*batch, *each.shape[-2:])) for each in (a, b)]
    solution: Array = apply(BY_NAME["solve"], operands)
    return solution


def inv(x: Any, /) -> Array:
    """Returns the inverses of square matrices [..., n, n]. Singular matrices give NaN."""
    return apply_to_one(BY_NAME["inv"], asarray(x), ())


def det(x: Any, /) -> Array:
    """Returns the determinants [...] of square matrices [..., n, n]."""
    return apply_to_one(BY_NAME["det"], asarray(x), ())


def slogdet(x: Any, /) -> SlogdetResult:
    """Returns the signs [...] of the determinants of square matrices [..., n, n], and the logarithms of their sizes.

    A complex sign is the determinant divided by its size, or 0.
    """
    sign, logarithm = apply_for_several(BY_NAME["slogdet"], [asarray(x)])
    return SlogdetResult(sign, real_of(logarithm))


def pinv(x: Any, /, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Array:  # noqa: FBT001, FBT002 - as NumPy has it
    """Returns the pseudo-inverses [..., n, m] of matrices [..., m, n].

    Singular values up to `rtol` (NumPy's older name: `rcond`) times the greatest one count as 0. By default it is the
    longer side times the dtype's epsilon. `hermitian` only says that the matrices are symmetric.
    """
    given = asarray(x)
    u, s, vh = svd(given, full_matrices=False)
    cutoff = _cutoff(s, given, rtol if rcond is None else rcond)
    inverse = where(s > cutoff, 1 / s, 0.0)
    found: Array = vh.mH @ (inverse[..., None] * u.mH)
    return found


def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Array:  # noqa: FBT001, FBT002, N803 - as NumPy has it
    """Returns the number of singular values above `tol`, or above `rtol` times the greatest one (see `pinv`), in int64.

    Of a vector or a scalar it is 1 unless all elements are 0.
    """
    given = asarray(A)
    if given.ndim < 2:
        is_any: Array = any_of(given != 0)
        return is_any.astype("int64")
    s = svdvals(given)
    limit = _cutoff(s, given, rtol) if tol is None else array_beside(tol, s)[..., None]
    return (s > limit).sum(axis=-1)


def _cutoff(s: Array, matrices: Array, relative: Any) -> Any:
    """Returns the limit [..., 1] up to which singular values count as 0."""
    if relative is None:
        relative = max(matrices.shape[-2:]) * float(np.finfo(s.dtype.name).eps)
    elif not isinstance(relative, int | float):
        relative = array_beside(relative, s)[..., None]
    return s.max(axis=-1, keepdims=True) * relative if s.shape[-1] else 0.0


def lstsq(a: Any, b: Any, rcond: float | None = None) -> tuple[Array, Array, Array, Array]:
    """Returns the x of the least |a @ x − b|, the squares of what is left for each column, the rank, and the singular
    values; for `a` of shape [m, n] and `b` of [m] or [m, k].

    `rcond` is what `pinv` takes. NumPy returns no squares if the rank is below n, which is not known here.
    """
    matrix, right = arrays_of(a, b)
    if matrix.ndim != 2 or right.ndim not in (1, 2):
        raise ShapeError(f"lstsq takes a matrix and a vector or a matrix, not the shapes {matrix.shape}, {right.shape}")
    columns = right[:, None] if right.ndim == 1 else right
    x = pinv(matrix, rcond) @ columns
    rows, unknowns = matrix.shape
    left = (size_of(matrix @ x - columns) ** 2).sum(axis=0) if rows > unknowns else real_of(x[:0]).sum(axis=1)
    s = svdvals(matrix)
    rank = (s > _cutoff(s, matrix, rcond)).sum()
    return (x[:, 0] if right.ndim == 1 else x), left, rank, s


def matrix_power(x: Any, n: SupportsIndex, /) -> Array:
    """Returns the n-th power of square matrices [..., n, n]; for a negative `n` that of their inverses."""
    given, power = asarray(x), operator.index(n)
    square(given.shape)
    if power < 0:
        return matrix_power(inv(given), -power)
    if power == 0:
        ones = filled(given.session, given.shape[-1:], 1, given.dtype)
        return broadcast_to(diag(ones), given.shape)
    if power == 1:
        return +given
    half = matrix_power(given, power // 2)
    return half @ half @ given if power % 2 else half @ half


def cond(x: Any, /, p: Any = None) -> Array:
    """Returns the condition numbers [...] of matrices: the norm of each times that of its inverse.

    `p` names the norm (see `matrix_norm`); None is 2: the quotient of the greatest and the least singular value.
    """
    given = asarray(x)
    if p in (None, 2, -2):
        s = svdvals(given)
        greatest, least = s[..., 0], s[..., -1]
        return least / greatest if p == -2 else greatest / least
    return norm(given, ord=p, axis=(-2, -1)) * norm(inv(given), ord=p, axis=(-2, -1))


def multi_dot(arrays: Any) -> Array:
    """Returns the product of two or more matrices, in a good order; the first and the last may be vectors."""
    given = arrays_of(*arrays)
    if len(given) < 2:
        raise ArgumentError("multi_dot takes two arrays or more")
    letters, next_letter = [], iter(ascii_letters)
    joint = next(next_letter)
    for place, each in enumerate(given):
        if each.ndim not in ((1, 2) if place in (0, len(given) - 1) else (2,)):
            raise ShapeError(f"multi_dot takes matrices, and vectors at the ends, not rank {each.ndim}")
        first = "" if place == 0 and each.ndim == 1 else joint
        joint = joint if place == 0 and each.ndim == 1 else next(next_letter)
        is_last_vector = place == len(given) - 1 and each.ndim == 1
        letters.append(first if is_last_vector else first + joint)
    outer = [letters[0][:-1], letters[-1][1:]]
    return einsum(f"{','.join(letters)}->{''.join(outer)}", *given)


def tensorsolve(a: Any, b: Any, axes: Any = None) -> Array:
    """Returns the x with tensordot(a, x, x.ndim) = b. `axes` of `a` are moved to its end first."""
    matrix, right = arrays_of(a, b)
    if axes is not None:
        last = [axis % matrix.ndim for axis in axes]
        matrix = matrix.transpose(*[axis for axis in range(matrix.ndim) if axis not in last], *last)
    shape = matrix.shape[right.ndim :]
    if prod(shape) != right.size:
        raise ShapeError(f"tensorsolve takes as many unknowns as equations, not {prod(shape)} and {right.size}")
    return solve(matrix.reshape(right.size, right.size), right.reshape(-1)).reshape(shape)


def tensorinv(a: Any, ind: SupportsIndex = 2) -> Array:
    """Returns the inverse of `a` under `tensordot(a, x, ind)`. Its first `ind` axes have as many elements as others."""
    given, count = asarray(a), operator.index(ind)
    if count <= 0:
        raise ArgumentError(f"tensorinv takes one axis or more, not {count}")
    first, last = given.shape[:count], given.shape[count:]
    if prod(first) != prod(last):
        raise ShapeError(f"tensorinv takes axes of as many elements, not {prod(first)} and {prod(last)}")
    return inv(given.reshape(prod(first), prod(last))).reshape(*last, *first)
