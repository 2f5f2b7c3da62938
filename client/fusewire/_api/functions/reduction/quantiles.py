"""Quantiles along axes, by whatever finds one of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusewire._api.array import Array
from fusewire._api.functions.arrangement.joining import stack
from fusewire._api.functions.arrangement.shapes import moveaxis
from fusewire._api.ops.operations import Axis, astype, axes_of
from fusewire._errors import ArgumentError
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType

_BETWEEN = ("linear", "midpoint")  # the methods whose results may be no elements


def quantiles(
    given: Array,
    q: Any,
    axis: Axis,
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
    axes = axes_of(axis, given.ndim)
    lines, along = (computed, axes[0]) if len(axes) == 1 else _in_one_axis(computed, axes)
    if not lines.shape[along]:
        raise ArgumentError("no elements to take a quantile of")
    results = [*map(prepare(lines, along), wanted.reshape(-1).tolist())]
    if keepdims:
        kept = tuple(1 if place in axes else length for place, length in enumerate(given.shape))
        results = [each.reshape(kept) for each in results]
    results = [astype(each, computed.dtype, copy=False) for each in results]
    if not wanted.ndim:
        return results[0]
    stacked = stack(results)
    return stacked.reshape((*wanted.shape, *stacked.shape[1:]))


def _in_one_axis(x: Array, axes: Sequence[int]) -> tuple[Array, int]:
    """Returns `x` with the elements along `axes` in one axis behind the others, and the place of that axis."""
    others = [place for place in range(x.ndim) if place not in axes]
    moved = moveaxis(x, axes, range(len(others), x.ndim))
    shape = moved.shape[: len(others)]
    return moved.reshape(*shape, math.prod(moved.shape[len(others) :])), len(others)


def of_a_hundred(percentiles: Any) -> Any:
    """Returns percentiles as quantiles. A Python number stays one."""
    return percentiles / 100 if type(percentiles) in (int, float) else np.asarray(percentiles) / 100


def _dtype_of(elements: DType, q: Any, method: str) -> DType:
    """Returns the dtype of the results. As in NumPy, `q` has a share in it unless it is a Python number."""
    if method not in _BETWEEN:
        return elements
    floating, of_q = dtypes.quotient(elements), dtypes.from_numpy(np.asarray(q).dtype)
    return dtypes.promote(floating, of_q) if of_q.is_floating and type(q) is not float else floating
