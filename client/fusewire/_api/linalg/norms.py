"""Norms of vectors and matrices."""

from __future__ import annotations

from math import inf
from typing import Any

from fusewire._api.array import Array
from fusewire._api.catalogue.catalogued import abs as size_of
from fusewire._api.catalogue.catalogued import sqrt
from fusewire._api.functions.arrangement.shapes import expand_dims, moveaxis
from fusewire._api.linalg.decompositions import svdvals
from fusewire._api.ops.operands import asarray
from fusewire._api.ops.operations import axis_of, integers_of
from fusewire._errors import ArgumentError, ShapeError


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Array:  # noqa: A002 - the standard's name
    """Returns norms along an axis, along several, or of all elements.

    `ord` is 2, 1, inf (the greatest size), -inf (the least), 0 (how many are not 0) or another number p: the p-th root
    of the sum of p-th powers.
    """
    given = _floating(x)
    sizes = size_of(given)
    if ord == inf:
        return sizes.max(axis=axis, keepdims=keepdims)
    if ord == -inf:
        return sizes.min(axis=axis, keepdims=keepdims)
    if ord == 0:
        return (given != 0).sum(axis=axis, keepdims=keepdims).astype(given.dtype)
    if ord == 1:
        return sizes.sum(axis=axis, keepdims=keepdims)
    if ord == 2:
        return sqrt((given * given).sum(axis=axis, keepdims=keepdims))
    if not isinstance(ord, int | float):
        raise ArgumentError(f"a vector has no norm {ord!r}")
    return (sizes**ord).sum(axis=axis, keepdims=keepdims) ** (1 / ord)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:  # noqa: A002
    """Returns norms [...] of matrices [..., m, n].

    `ord` is "fro", "nuc" (the sum of singular values), 2 (the greatest) or -2 (the least), 1 or -1 (the greatest or
    least sum of sizes down a column), inf or -inf (along a row).
    """
    given = asarray(x)
    if given.ndim < 2:
        raise ShapeError(f"a matrix norm takes matrices, not the shape {given.shape}")
    is_of_singular_values = ord in ("nuc", 2, -2)  # which follow from more than the sizes of complex numbers
    found = _matrix_norm(given if given.dtype.is_complex and is_of_singular_values else _floating(given), ord)
    return expand_dims(found, (-2, -1)) if keepdims else found


def _matrix_norm(x: Array, kind: Any) -> Array:
    if kind == "fro":
        return sqrt((x * x).sum(axis=(-2, -1)))
    if kind == "nuc":
        return svdvals(x).sum(axis=-1)
    if kind in (2, -2):
        s = svdvals(x)
        return s.max(axis=-1) if kind > 0 else s.min(axis=-1)
    if kind not in (1, -1, inf, -inf):
        raise ArgumentError(f"a matrix has no norm {kind!r}")
    sums = size_of(x).sum(axis=-2 if abs(kind) == 1 else -1)
    return sums.max(axis=-1) if kind > 0 else sums.min(axis=-1)


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array:  # noqa: A002, FBT001, FBT002 - as NumPy has them
    """Returns vector norms along an axis, or matrix norms along two; without `axis`, the norm of the whole array.

    Without `ord` it is the root of the sum of squares. See `vector_norm` and `matrix_norm`.
    """
    given = asarray(x)
    if ord is None:
        return vector_norm(given, axis=axis, keepdims=keepdims)
    axes = [axis_of(each, given.ndim) for each in (range(given.ndim) if axis is None else integers_of(axis))]
    if len(axes) == 1:
        return vector_norm(given, axis=axes[0], keepdims=keepdims, ord=ord)
    if len(axes) != 2:
        raise ArgumentError(f"a norm {ord!r} takes one or two axes, not {len(axes)}")
    found = matrix_norm(moveaxis(given, axes, (-2, -1)), ord=ord)
    return expand_dims(found, axes) if keepdims else found


def _floating(x: Any) -> Array:
    """Returns `x` in floats. A norm takes nothing of complex numbers but their sizes."""
    given = asarray(x)
    if given.dtype.is_complex:
        return size_of(given)
    return given if given.dtype.is_floating else given.astype("float64")
