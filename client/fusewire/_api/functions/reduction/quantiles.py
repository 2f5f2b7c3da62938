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
from fusewire_protos.ops.dtypes import DType

_BETWEEN = ("linear", "midpoint")  # the methods whose results may be no elements


def quantiles(
    given: Array,
    q: Any,
    axis: int | None,
    method: str,
    prepare: Callable[[Array, int], Callable[[float], Array]],
    *,
    keepdims: bool,
) -> Array:
    """Returns the quantiles `q` as `fusewire.quantile` does. `prepare` returns what finds one along an axis.

    Raises ArgumentError for numbers that are not from 0 to 1, and if there are no elements.
    """
    wanted = np.asarray(q, np.float64)
    if not ((wanted >= 0) & (wanted <= 1)).all():
        raise ArgumentError(f"quantiles are from 0 to 1, not {q!r}")
    computed = astype(given, _dtype_of(given.dtype, q, method), copy=False)
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


def of_a_hundred(percentiles: Any) -> Any:
    """Returns percentiles as quantiles. A Python number stays one."""
    return percentiles / 100 if type(percentiles) in (int, float) else np.asarray(percentiles) / 100


def _dtype_of(elements: DType, q: Any, method: str) -> DType:
    """Returns the dtype of the results. As in NumPy, `q` has a share in it unless it is a Python number."""
    if method not in _BETWEEN:
        return elements
    floating, of_q = dtypes.quotient(elements), dtypes.from_numpy(np.asarray(q).dtype)
    return dtypes.promote(floating, of_q) if of_q.is_floating and type(q) is not float else floating
