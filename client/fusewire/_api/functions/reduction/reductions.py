"""Functions that make one element from many, and those that normalise along axes."""

from __future__ import annotations

from typing import Any

from fusewire._api.array import Array
from fusewire._api.ops import operations
from fusewire._api.ops.operands import array_beside, asarray
from fusewire._api.ops.operations import Axis

__all__ = ["argmax", "argmin", "layer_norm", "mean", "prod", "std", "sum", "var"]


def sum(  # noqa: A001
    x: Any,
    /,
    axis: Axis = None,
    dtype: Any = None,
    *,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Array:
    """Returns the sum along `axis`. Integers and booleans are summed in int64, 16-bit floats in float32.

    `initial` is added, and only the elements are summed where the mask `where` is true.
    """
    return asarray(x).sum(axis, dtype, keepdims=keepdims, initial=initial, where=where)


def prod(
    x: Any,
    /,
    axis: Axis = None,
    dtype: Any = None,
    *,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Array:
    """Returns the product along `axis`. Integers and booleans are multiplied in int64, 16-bit floats in float32.

    `initial` is one more factor, and only the elements are multiplied where the mask `where` is true.
    """
    return asarray(x).prod(axis, dtype, keepdims=keepdims, initial=initial, where=where)


def mean(x: Any, /, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False, where: Any = True) -> Array:
    """Returns the mean along `axis` of the elements where the mask `where` is true. That of integers is float64."""
    return asarray(x).mean(axis, dtype, keepdims=keepdims, where=where)


def var(
    x: Any, /, axis: Axis = None, *, correction: float = 0, ddof: float = 0, keepdims: bool = False, where: Any = True
) -> Array:
    """Returns the variance along `axis`: the sum of squared distances from the mean, divided by n − `correction`.

    n is the number of elements, or of those where the mask `where` is true. `ddof` is NumPy's name of `correction`.
    """
    return asarray(x).var(axis, correction=correction, ddof=ddof, keepdims=keepdims, where=where)


def std(
    x: Any, /, axis: Axis = None, *, correction: float = 0, ddof: float = 0, keepdims: bool = False, where: Any = True
) -> Array:
    """Returns the square root of `var`."""
    return asarray(x).std(axis, correction=correction, ddof=ddof, keepdims=keepdims, where=where)


def argmin(x: Any, /, axis: int | None = None, *, keepdims: bool = False) -> Array:
    """Returns the index of the first least element, in int64."""
    return asarray(x).argmin(axis, keepdims=keepdims)


def argmax(x: Any, /, axis: int | None = None, *, keepdims: bool = False) -> Array:
    """Returns the index of the first greatest element, in int64."""
    return asarray(x).argmax(axis, keepdims=keepdims)


def layer_norm(x: Any, weight: Any = None, bias: Any = None, *, axis: Axis = -1, epsilon: float = 1e-5) -> Array:
    """Returns (x − mean) / sqrt(var + epsilon) along `axis`, times `weight` and plus `bias` if they are given."""
    normal = operations.along("layer_norm", array_beside(x, weight, bias), axis, (float(epsilon),))
    scaled = normal if weight is None else normal * weight
    return scaled if bias is None else scaled + bias
