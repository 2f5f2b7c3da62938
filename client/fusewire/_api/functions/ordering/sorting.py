"""Sorting, and what follows from sorted elements; sums and products of the first elements.

NaN counts as greater than every number, and equal elements keep their order. So ascending order ends with NaN, as in
NumPy, and descending order begins with it.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from fusewire._api.array import Array
from fusewire._api.catalogue.catalogued import isnan
from fusewire._api.functions.arrangement.joining import concat
from fusewire._api.functions.arrangement.shapes import broadcast_to
from fusewire._api.functions.elementwise.choices import where
from fusewire._api.functions.reduction.quantiles import of_a_hundred, quantiles
from fusewire._api.ops.operands import arrays_of, asarray
from fusewire._api.ops.operations import Axis, astype, axis_of, dtype_of, integers_of
from fusewire._errors import ArgumentError
from fusewire._recording.record_op import apply
from fusewire_protos.ops.catalogue import BY_NAME

__all__ = [
    "argpartition",
    "argsort",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "cumulative_max",
    "cumulative_min",
    "cumulative_prod",
    "cumulative_sum",
    "lexsort",
    "median",
    "partition",
    "percentile",
    "quantile",
    "sort",
    "topk",
]


def argsort(
    x: Any, /, axis: int | None = -1, kind: Any = None, *, descending: bool = False, stable: bool = True
) -> Array:
    """Returns the indices that sort `x` along `axis`, in int64; without an axis, those of the flattened array.

    Every order is stable, whatever `kind` and `stable` say. Raises AxisError for an axis out of range, also for rank 0.
    """
    given = asarray(x)
    if axis is None:
        return argsort(given.reshape(-1), descending=descending)
    order: Array = apply(BY_NAME["argsort"], (given,), (axis_of(axis, given.ndim), bool(descending)))
    return order


def sort(x: Any, /, axis: int | None = -1, kind: Any = None, *, descending: bool = False, stable: bool = True) -> Array:
    """Returns the elements of `x` in order along `axis`; without an axis, those of the flattened array.

    Every order is stable, whatever `kind` and `stable` say. Raises what `argsort` raises.
    """
    given = asarray(x)
    if axis is None:
        return sort(given.reshape(-1), descending=descending)
    return _taken_along(given, argsort(given, axis=axis, descending=descending), axis_of(axis, given.ndim))


def partition(x: Any, /, kth: int | Sequence[int], axis: int = -1) -> Array:
    """Returns the elements of `x` in order along `axis`, so that those before place `kth` are not greater than it.

    Raises ArgumentError for a place that the axis does not have.
    """
    _check_places(asarray(x), kth, axis)
    return sort(x, axis=axis)


def argpartition(x: Any, /, kth: int | Sequence[int], axis: int = -1) -> Array:
    """Returns the indices that `partition` takes, in int64. Raises what `partition` raises."""
    _check_places(asarray(x), kth, axis)
    return argsort(x, axis=axis)


def _check_places(x: Array, kth: int | Sequence[int], axis: int) -> None:
    length = x.shape[axis_of(axis, x.ndim)]
    for place in map(operator.index, integers_of(kth)):
        if not -length <= place < length:
            raise ArgumentError(f"kth = {place} is no place on axis {axis} of length {length}")


def topk(x: Any, k: int, /, *, axis: int = -1, largest: bool = True) -> tuple[Array, Array]:
    """Returns the `k` greatest elements of `x` along `axis`, the greatest first, and their indices in int64.

    Without `largest` they are the least ones, the least first. NaN is greater than all numbers; of equal elements those
    at lower indices come first. Raises ArgumentError unless 0 ≤ `k` ≤ the length of the axis.
    """
    given = asarray(x)
    along = axis_of(axis, given.ndim)
    count = operator.index(k)
    if not 0 <= count <= given.shape[along]:
        raise ArgumentError(f"k = {count} is no number of elements of axis {axis} of {given.shape}")
    places = argsort(given, axis=along, descending=largest)[(*[slice(None)] * along, slice(count))]
    return _taken_along(given, places, along), places


def lexsort(keys: Any, /, axis: int = -1) -> Array:
    """Returns the indices that sort by several keys, of which the last counts most, in int64."""
    given = arrays_of(*keys) if isinstance(keys, list | tuple) else list(asarray(keys))
    if not given:
        raise ArgumentError("lexsort takes one key or more")
    along = axis_of(axis, given[0].ndim)
    order = argsort(given[0], axis=along)
    for key in given[1:]:
        order = _taken_along(order, argsort(_taken_along(key, order, along), axis=along), along)
    return order


def _taken_along(x: Array, places: Array, axis: int) -> Array:
    taken: Array = apply(BY_NAME["take_along_axis"], (x, places), (axis,))
    return taken


# ---- of the first elements ----


def cumulative_sum(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: builtins.bool = False
) -> Array:
    """Returns the sums of the first elements along `axis`, which a vector need not name.

    Booleans and integers are added in int64, unsigned ones in uint64, unless `dtype` says otherwise. With
    `include_initial` a 0 comes first.
    """
    return _accumulated("cumulative_sum", x, axis, dtype, 0 if include_initial else None)


def cumulative_prod(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: builtins.bool = False
) -> Array:
    """Returns the products of the first elements along `axis`, as `cumulative_sum` returns sums; a 1 may come first."""
    return _accumulated("cumulative_prod", x, axis, dtype, 1 if include_initial else None)


def cumulative_max(x: Any, /, axis: int | None = None) -> Array:
    """Returns the greatest of the first elements along `axis`, which a vector need not name; NaN from a NaN on."""
    return _accumulated("cumulative_max", x, axis, None, None)


def cumulative_min(x: Any, /, axis: int | None = None) -> Array:
    """Returns the least of the first elements along `axis`, which a vector need not name; NaN from a NaN on."""
    return _accumulated("cumulative_min", x, axis, None, None)


cummax, cummin = cumulative_max, cumulative_min


def cumsum(x: Any, /, axis: int | None = None, dtype: Any = None) -> Array:
    """Returns the sums of the first elements along `axis`, or of the flattened array if `axis` is None."""
    given = asarray(x)
    return cumulative_sum(given.reshape(-1) if axis is None else given, axis=axis, dtype=dtype)


def cumprod(x: Any, /, axis: int | None = None, dtype: Any = None) -> Array:
    """Returns the products of the first elements along `axis`, or of the flattened array if `axis` is None."""
    given = asarray(x)
    return cumulative_prod(given.reshape(-1) if axis is None else given, axis=axis, dtype=dtype)


def _accumulated(name: str, x: Any, axis: int | None, dtype: Any, initial: int | None) -> Array:
    given = asarray(x)
    if axis is None and given.ndim != 1:
        raise ArgumentError(f"{name} of an array of rank {given.ndim} needs an axis")
    along = axis_of(0 if axis is None else axis, given.ndim)
    wanted = None if dtype is None else dtype_of(dtype)
    if wanted is not None:
        given = astype(given, wanted, copy=False)
    result: Array = apply(BY_NAME[name], (given,), (along,))
    if wanted is not None:
        result = astype(result, wanted, copy=False)
    if initial is None:
        return result
    shape = (*result.shape[:along], 1, *result.shape[along + 1 :])
    first = astype(broadcast_to(given.session.array(initial), shape), result.dtype, copy=False)
    return concat([first, result], axis=along)


# ---- of sorted elements ----

Method = Literal["linear", "lower", "higher", "midpoint", "nearest"]


def median(x: Any, /, axis: Axis = None, *, keepdims: builtins.bool = False) -> Array:
    """Returns the median along one or several axes, or of all elements; NaN if one is. That of integers is float64."""
    return quantile(x, 0.5, axis=axis, keepdims=keepdims)


def percentile(
    x: Any, q: Any, /, axis: Axis = None, *, method: Method = "linear", keepdims: builtins.bool = False
) -> Array:
    """Returns `quantile` of q / 100."""
    return quantile(x, of_a_hundred(q), axis=axis, method=method, keepdims=keepdims)


def quantile(
    x: Any, q: Any, /, axis: Axis = None, *, method: Method = "linear", keepdims: builtins.bool = False
) -> Array:
    """Returns the quantiles `q`, from 0 to 1, along one or several axes, or of all elements; NaN if one is.

    `q` is a number or a sequence of the host, whose axes come first in the result. Raises ArgumentError for numbers
    outside, for an unknown method, and if there are no elements.
    """

    def of_all(flat: Array, along: int) -> Callable[[float], Array]:
        last = flat.shape[along] - 1
        ordered = sort(flat, axis=along)
        if not flat.dtype.is_floating:
            return lambda part: _at(ordered, part * last, along, method)
        has_nan = isnan(ordered.take(last, axis=along))
        return lambda part: where(has_nan, np.nan, _at(ordered, part * last, along, method))

    return quantiles(asarray(x), q, axis, method, of_all, keepdims=keepdims)


def _at(ordered: Array, place: float, axis: int, method: Method) -> Array:
    """Returns what lies at a place between two neighbours in order, both counted from 0."""
    low = int(place)
    high, part = builtins.min(low + 1, ordered.shape[axis] - 1), place - low
    parts: dict[str, Sequence[float]] = {
        "linear": (part,),
        "lower": (0.0,),
        "higher": (1.0 if part else 0.0,),
        "midpoint": (0.5 if part else 0.0,),
        "nearest": (float(np.round(place)) - low,),
    }
    if method not in parts:
        raise ArgumentError(f"quantile has no method {method!r}; known are {', '.join(parts)}")
    (weight,) = parts[method]
    below, above = ordered.take(low, axis=axis), ordered.take(high, axis=axis)
    if weight in (0.0, 1.0):
        return above if weight else below
    return below + (above - below) * weight
