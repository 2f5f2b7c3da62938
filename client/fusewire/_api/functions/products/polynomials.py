"""Polynomials, given by the coefficients of their powers."""

from __future__ import annotations

import operator
from typing import Any

from fusewire._api.array import Array
from fusewire._api.functions.arrangement.joining import stack
from fusewire._api.functions.arrangement.places import flip
from fusewire._api.functions.creation.creation import ones_like, zeros_like
from fusewire._api.ops.operands import arrays_of, asarray
from fusewire._api.ops.operations import astype
from fusewire._errors import ArgumentError, ShapeError
from fusewire_protos.ops import dtypes

__all__ = ["polyval", "vander"]


def polyval(p: Any, x: Any, /) -> Array:
    """Returns the values at `x` of the polynomial whose coefficients `p` are a vector, the highest power first.

    They are computed by Horner's rule. Raises ShapeError unless `p` is a vector.
    """
    coefficients, points = arrays_of(p, x)
    if coefficients.ndim != 1:
        raise ShapeError(f"polyval takes a vector of coefficients, not rank {coefficients.ndim}")
    value = zeros_like(points)
    for place in range(coefficients.size):
        value = value * points + coefficients[place]
    return value


def vander(x: Any, /, N: int | None = None, *, increasing: bool = False) -> Array:  # noqa: N803  # NumPy's name
    """Returns a matrix of powers: a row for each element of the vector `x`, with its powers from `N` − 1 down to 0.

    `N` is the number of columns, by default that of the elements. With `increasing` the powers ascend. Raises
    ShapeError unless `x` is a vector, and ArgumentError for a negative `N`.
    """
    given = asarray(x)
    if given.ndim != 1:
        raise ShapeError(f"vander takes a vector, not rank {given.ndim}")
    columns = given.size if N is None else operator.index(N)
    if columns < 0:
        raise ArgumentError(f"vander of {columns} columns: expected 0 or more")
    wide = astype(given, dtypes.promote(given.dtype, dtypes.int64), copy=False)
    powers = [ones_like(wide)]
    for _ in range(1, columns):
        powers.append(powers[-1] * wide)
    matrix = stack(powers, axis=1)[:, :columns]
    return matrix if increasing else flip(matrix, axis=1)
