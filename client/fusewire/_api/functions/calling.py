"""Functions that call a function of the user: with the points of a grid, with vectors, or for pieces of a range."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fusewire._api.array import Array
from fusewire._api.catalogue.catalogued import logical_not, logical_or
from fusewire._api.functions.arrangement.joining import stack
from fusewire._api.functions.arrangement.shapes import moveaxis
from fusewire._api.functions.creation.creation import ShapeLike, zeros_like
from fusewire._api.functions.creation.grids import indices
from fusewire._api.functions.elementwise.choices import where
from fusewire._api.ops.operands import array_beside, asarray
from fusewire._api.ops.operations import astype, axis_of, shape_of
from fusewire._errors import ArgumentError
from fusewire_protos.ops import dtypes

__all__ = ["apply_along_axis", "fromfunction", "piecewise"]


def apply_along_axis(function: Callable[..., Any], axis: int, x: Any, /, *arguments: Any, **options: Any) -> Array:
    """Returns the results of a function of each vector of `x` along `axis`. They lie along that axis.

    The function is called once for each vector, so ops on all of `x` are faster. Raises ArgumentError if there are no
    vectors, and AxisError for an axis out of range.
    """
    given = asarray(x)
    along = axis_of(axis, given.ndim)
    vectors = moveaxis(given, along, -1)
    *batch, length = vectors.shape
    rows = vectors.reshape(-1, length) if length else vectors.reshape(0, 0)
    if not rows.shape[0]:
        raise ArgumentError(f"apply_along_axis of no vectors: the shape is {given.shape}")
    results = [array_beside(function(row, *arguments, **options), given) for row in rows]
    rank = results[0].ndim
    whole = stack(results).reshape(*batch, *results[0].shape)
    return moveaxis(whole, range(len(batch), len(batch) + rank), range(along, along + rank))


def fromfunction(
    function: Callable[..., Any], shape: ShapeLike, /, *, dtype: Any = dtypes.float64, **options: Any
) -> Any:
    """Returns what a function gives for the coordinates of all places of a shape: an array for each axis."""
    return function(*indices(shape_of(shape), dtype=dtype), **options)


def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], /, *arguments: Any, **options: Any) -> Array:
    """Returns for each element the value of the function whose condition holds, the last one of several; else 0.

    A function may be a number, and one more than there are conditions is for the elements where none holds. Each
    function is called with all of `x`. The results have the dtype of `x`. Raises ArgumentError for other numbers of
    functions.
    """
    given = asarray(x)
    several = isinstance(condlist, list | tuple) and not all(isinstance(each, bool) for each in condlist)
    conditions = [array_beside(each, given) for each in (condlist if several else [condlist])]
    functions = [*funclist]
    if len(functions) == len(conditions) + 1:
        holds = conditions[0]
        for each in conditions[1:]:
            holds = logical_or(holds, each)
        conditions.append(logical_not(holds))
    if len(functions) != len(conditions):
        raise ArgumentError(
            f"piecewise takes {len(conditions)} or {len(conditions) + 1} functions, not {len(functions)}"
        )
    result = zeros_like(given)
    for holds, function in zip(conditions, functions, strict=True):
        value = function(given, *arguments, **options) if callable(function) else function
        result = where(holds, astype(array_beside(value, given), given.dtype, copy=False), result)
    return result
