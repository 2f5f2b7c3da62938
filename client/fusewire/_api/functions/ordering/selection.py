"""Functions whose results have as many elements as values decide. They wait for what decides it: one round trip."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fusewire._api.array import Array
from fusewire._api.catalogue.catalogued import isnan
from fusewire._api.functions.arrangement.joining import concat
from fusewire._api.functions.arrangement.shapes import moveaxis
from fusewire._api.functions.creation.creation import zeros_like
from fusewire._api.functions.ordering.keys import keys_of
from fusewire._api.functions.ordering.searching import isin
from fusewire._api.functions.ordering.sorting import argsort, cumulative_sum, lexsort
from fusewire._api.ops.operands import array_beside, arrays_of, asarray
from fusewire._api.ops.operations import astype, axis_of
from fusewire._errors import ArgumentError
from fusewire_protos.ops import dtypes

__all__ = [
    "argwhere",
    "compress",
    "extract",
    "flatnonzero",
    "intersect1d",
    "nonzero",
    "setdiff1d",
    "setxor1d",
    "union1d",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
]


class UniqueAll(NamedTuple):
    """The different elements in order, where each stands first in the flat array, where all stand among them.

    `counts` tell how often each occurs.
    """

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """The different elements in order, and how often each occurs."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """The different elements in order, and where all elements stand among them."""

    values: Array
    inverse_indices: Array


def nonzero(x: Any, /) -> tuple[Array, ...]:
    """Returns the indices of the elements that are not 0, a vector of int64 for each axis.

    Raises ArgumentError for rank 0.
    """
    given = asarray(x)
    if not given.ndim:
        raise ArgumentError("nonzero takes no array of rank 0")
    return tuple([array_beside(places.astype(np.int64), given) for places in np.nonzero((given != 0).numpy())])


def flatnonzero(x: Any, /) -> Array:
    """Returns the indices in the flat array of the elements that are not 0, in int64."""
    return nonzero(asarray(x).reshape(-1))[0]


def argwhere(x: Any, /) -> Array:
    """Returns the indices of the elements that are not 0, in int64: a row for each element."""
    given = asarray(x)
    return array_beside(np.argwhere((given != 0).numpy()).astype(np.int64), given)


def compress(condition: Any, x: Any, /, axis: int | None = None) -> Array:
    """Returns the elements of `x` along `axis` where the vector `condition` is true.

    Without an axis they are those of the flat array. What lies beyond the end of `condition` is left out. Raises
    ArgumentError unless `condition` is a vector.
    """
    given = array_beside(x, condition)
    chosen = np.asarray(condition) != 0
    if chosen.ndim != 1:
        raise ArgumentError(f"compress takes a vector of conditions, not rank {chosen.ndim}")
    return given.take(np.flatnonzero(chosen), axis)


def extract(condition: Any, x: Any, /) -> Array:
    """Returns the elements of `x`, seen flat, where `condition` is true."""
    return compress(np.asarray(condition).reshape(-1), x)


def unique_all(x: Any, /) -> UniqueAll:
    """Returns the different elements of `x`, their first indices, inverse and counts. Each NaN is one of its own."""
    return _unique_all(asarray(x), equal_nan=False)


def unique_counts(x: Any, /) -> UniqueCounts:
    """Returns the different elements of `x` and their counts. Each NaN is one of its own."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Any, /) -> UniqueInverse:
    """Returns the different elements of `x`, and where its elements stand among them. Each NaN is one of its own."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Any, /) -> Array:
    """Returns the different elements of `x` in ascending order. Each NaN is one of its own."""
    return unique_all(x).values


def unique(
    x: Any,
    /,
    return_index: bool = False,  # noqa: FBT001, FBT002  # NumPy's parameters
    return_inverse: bool = False,  # noqa: FBT001, FBT002
    return_counts: bool = False,  # noqa: FBT001, FBT002
    axis: int | None = None,
    *,
    equal_nan: bool = True,
) -> Any:
    """Returns the different elements of `x` in ascending order; as a tuple, if first indices, inverse or counts follow.

    With an `axis` they are the different parts along it, in the order of their elements. With `equal_nan` all NaNs are
    one element; parts that hold NaN are all different.
    """
    given = asarray(x)
    found = _unique_all(given, equal_nan=equal_nan) if axis is None else _unique_parts(given, axis_of(axis, given.ndim))
    wanted = zip(found, (True, return_index, return_inverse, return_counts), strict=True)
    results = tuple([result for result, is_wanted in wanted if is_wanted])
    return results if len(results) > 1 else results[0]


def _unique_all(x: Array, *, equal_nan: bool) -> UniqueAll:
    flat = x.reshape(-1)
    order = lexsort(keys_of(flat))
    ordered = flat.take(order, 0)
    differs = ordered[1:] != ordered[:-1]
    if equal_nan and (flat.dtype.is_floating or flat.dtype.is_complex):
        differs = differs & ~(isnan(ordered[1:]) & isnan(ordered[:-1]))
    is_first = concat([array_beside(np.ones(min(flat.size, 1), np.bool_), x), differs]) if flat.size else differs
    starts = np.flatnonzero(is_first.numpy()).astype(np.int64)
    counts = array_beside(np.diff(starts, append=flat.size), x)
    number = cumulative_sum(astype(is_first, dtypes.int64)) - 1
    inverse = number.take(argsort(order), 0).reshape(x.shape)
    return UniqueAll(ordered.take(starts, 0), order.take(starts, 0), inverse, counts)


def _unique_parts(x: Array, axis: int) -> UniqueAll:
    parts = moveaxis(x, axis, 0)
    rows = parts.reshape(len(parts), math.prod(parts.shape[1:]))
    keys = [key for column in rows.T[::-1] for key in keys_of(column)]
    order = lexsort(keys) if keys else argsort(zeros_like(rows, dtypes.int64).sum(1))
    ordered = rows.take(order, 0)
    is_first = (ordered[1:] != ordered[:-1]).any(axis=1)
    first = array_beside(np.ones(min(len(rows), 1), np.bool_), x)
    is_first = concat([first, is_first])
    starts = np.flatnonzero(is_first.numpy()).astype(np.int64)
    counts = array_beside(np.diff(starts, append=len(rows)), x)
    inverse = (cumulative_sum(astype(is_first, dtypes.int64)) - 1).take(argsort(order), 0)
    places = order.take(starts, 0)
    return UniqueAll(x.take(places, axis), places, inverse, counts)


def union1d(x1: Any, x2: Any, /) -> Array:
    """Returns in ascending order the different elements of both arrays."""
    united: Array = unique(concat(arrays_of(x1, x2), axis=None))
    return united


def intersect1d(
    x1: Any,
    x2: Any,
    /,
    assume_unique: bool = False,  # noqa: FBT001, FBT002  # NumPy's parameters
    return_indices: bool = False,  # noqa: FBT001, FBT002
) -> Any:
    """Returns in ascending order the different elements that both arrays have.

    With `return_indices` the places where each array has them first follow. `assume_unique` changes nothing.
    """
    (one, at_one, *_), (other, at_other, *_) = (_unique_all(each, equal_nan=True) for each in arrays_of(x1, x2))
    is_common = isin(one, other)
    if not return_indices:
        return one[is_common]
    return one[is_common], at_one[is_common], at_other[isin(other, one)]


def setdiff1d(x1: Any, x2: Any, /, assume_unique: bool = False) -> Array:  # noqa: FBT001, FBT002
    """Returns in ascending order the different elements of `x1` that `x2` has not.

    With `assume_unique` they keep the order that they have in `x1`.
    """
    given, others = arrays_of(x1, x2)
    elements: Array = given.reshape(-1) if assume_unique else unique(given)
    return elements[isin(elements, others, invert=True)]


def setxor1d(x1: Any, x2: Any, /, assume_unique: bool = False) -> Array:  # noqa: FBT001, FBT002
    """Returns in ascending order the different elements that one array has and the other has not.

    `assume_unique` changes nothing.
    """
    one, other = arrays_of(x1, x2)
    elements = union1d(one, other)
    return elements[isin(elements, one) ^ isin(elements, other)]
