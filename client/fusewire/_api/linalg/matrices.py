"""What the namespace of linear algebra defines otherwise than the main one: matrices lie along the last two axes."""

from __future__ import annotations

from typing import Any

from fusewire._api.array import Array
from fusewire._api.functions.arrangement import matrices
from fusewire._api.functions.products import products
from fusewire._api.ops.operands import arrays_of
from fusewire._errors import ShapeError


def diagonal(x: Any, /, *, offset: int = 0) -> Array:
    """Returns the diagonals [..., k] of matrices [..., m, n]. A positive `offset` is above the main diagonal."""
    return matrices.diagonal(x, offset, -2, -1)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """Returns the sums [...] of the diagonals of matrices [..., m, n]."""
    return matrices.trace(x, offset, -2, -1, dtype)


def outer(x1: Any, x2: Any, /) -> Array:
    """Returns the products of each element of a vector with each element of another. Raises ShapeError for others."""
    a, b = arrays_of(x1, x2)
    if a.ndim != 1 or b.ndim != 1:
        raise ShapeError(f"outer takes vectors, not the shapes {a.shape} and {b.shape}")
    return products.outer(a, b)
