"""Quantiles along an axis or of all elements, by whatever finds one of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fusewire._api.array import Array
from fusewire._api.functions.arrangement.joining import stack
from fusewire._api.ops.operations import astype, axis_of
from fusewire._errors import ArgumentError
from fusewire_protos.ops import dtypes


def quantiles(
    given: Array,
    q: Any,
    axis: int | None,
    prepare: Callable[[Array, int], Callable[[float], Array]],
    *,
    keepdims: bool,
) -> Array:
    """Returns the quantiles `q` as `fusewire.quantile` does. `prepare` returns what finds one along an axis of floats.

    Raises ArgumentError for numbers that are not from 0 to 1, and if there are no elements.
    """
    wanted = np.asarray(q, np.float64)
    if not ((wanted >= 0) & (wanted <= 1)).all():
        raise ArgumentError(f"quantiles are from 0 to 1, not {q!r}")
    computed = astype(given, dtypes.quotient(given.dtype), copy=False)
    flat = computed.reshape(-1) if axis is None else computed
    along = 0 if axis is None else axis_of(axis, given.ndim)
    if not flat.shape[along]:
        raise ArgumentError("no elements to take a quantile of")
    results = [*map(prepare(flat, along), wanted.reshape(-1).tolist())]
    if keepdims:
        kept = (1,) * given.ndim if axis is None else (*flat.shape[:along], 1, *flat.shape[along + 1 :])
        results = [each.reshape(kept) for each in results]
    results = [astype(each, computed.dtype, copy=False) for each in results]
    if not wanted.ndim:
        return results[0]
    stacked = stack(results)
    return stacked.reshape((*wanted.shape, *stacked.shape[1:]))
