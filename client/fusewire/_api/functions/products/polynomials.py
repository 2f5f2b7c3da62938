"""Polynomials, given by the coefficients of their powers."""

from __future__ import annotations

import operator
from typing import Any

from fusewire._api.array import Array
from fusewire._api.catalogue.catalogued import sqrt
from fusewire._api.functions.arrangement.joining import stack
from fusewire._api.functions.arrangement.places import flip
from fusewire._api.functions.creation.creation import ones_like, zeros_like
from fusewire._api.functions.dtypes import finfo
from fusewire._api.functions.products.products import outer
from fusewire._api.linalg.equations import inv, lstsq
from fusewire._api.ops.operands import array_beside, arrays_of, asarray
from fusewire._api.ops.operations import astype
from fusewire._errors import ArgumentError, ShapeError
from fusewire_protos.ops import dtypes

__all__ = ["polyfit", "polyval", "vander"]


def polyfit(
    x: Any,
    y: Any,
    /,
    deg: int,
    rcond: float | None = None,
    *,
    full: bool = False,
    w: Any = None,
    cov: bool | str = False,
) -> Array | tuple[Any, ...]:
    """Returns the coefficients of the polynomial of degree `deg` that is nearest to `y` at `x`, highest power first.

    `x` is a vector [m], `y` a vector or a matrix [m, k] of several to fit, and `w` [m] multiplies what is left at each
    point, whose squares are least. `rcond` is what `lstsq` takes, by default m times the precision. With `cov` the
    covariances of the coefficients are returned too, which for "unscaled" are not multiplied by the variance of what
    is left; with `full`, what `lstsq` returns beside them, and `rcond`. Raises ShapeError for other shapes, and
    ArgumentError for a negative degree, no points, and too few for `cov`.
    """
    terms = operator.index(deg) + 1
    points, values = (astype(each, dtypes.promote(each.dtype, dtypes.float32), copy=False) for each in arrays_of(x, y))
    weights = None if w is None else array_beside(w, points)
    _check_fit(terms - 1, points, values, weights)
    powers = vander(points, terms)
    if weights is not None:
        powers, values = powers * weights[:, None], (values.T * weights).T
    scale = sqrt((powers * powers).sum(0))
    scaled = powers / scale
    precision = float(finfo(powers.dtype).eps)
    cut = points.size * precision if rcond is None else rcond
    coefficients, left, *rank = lstsq(scaled, values, cut)
    fitted = (coefficients.T / scale).T
    if full:
        return (fitted, left, *rank, cut)
    return (fitted, _covariances(scaled, scale, values, left, by_variance=cov != "unscaled")) if cov else fitted


def _covariances(scaled: Array, scale: Array, values: Array, left: Array, *, by_variance: bool) -> Array:
    """Returns those of the coefficients, for a matrix whose columns were divided by `scale`."""
    covariances = inv(scaled.mT @ scaled) / outer(scale, scale)
    points, terms = scaled.shape
    if not by_variance:
        variance: Any = 1.0
    elif points > terms:
        variance = (left if values.ndim == 2 else left[0]) / (points - terms)
    else:
        raise ArgumentError(f"the covariances of {terms} coefficients take more points than {points}")
    varied: Array = (covariances[:, :, None] if values.ndim == 2 else covariances) * variance
    return varied


def _check_fit(degree: int, points: Array, values: Array, weights: Array | None) -> None:
    if degree < 0:
        raise ArgumentError(f"polyfit of degree {degree}: expected 0 or more")
    if points.ndim != 1 or values.ndim not in (1, 2) or values.shape[:1] != points.shape:
        raise ShapeError(f"polyfit takes a vector and as many values, not the shapes {points.shape}, {values.shape}")
    if not points.size:
        raise ArgumentError("polyfit takes one point or more")
    if weights is not None and weights.shape != points.shape:
        raise ShapeError(f"weights of shape {weights.shape} beside {points.shape}")


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
