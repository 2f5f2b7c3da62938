"""Functions that leave NaN out, or put numbers in its place."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from fusewire._api.array import Array
from fusewire._api.catalogue.catalogued import floor, isnan, logical_not, minimum
from fusewire._api.complex.complex_array import ComplexArray
from fusewire._api.functions.arrangement.places import take_along_axis
from fusewire._api.functions.dtypes import finfo
from fusewire._api.functions.elementwise.choices import clip, where
from fusewire._api.functions.ordering.sorting import Method, cumprod, cumsum, quantile, sort
from fusewire._api.functions.reduction.quantiles import of_a_hundred, quantiles
from fusewire._api.ops import operations
from fusewire._api.ops.masked import mask_of
from fusewire._api.ops.operands import asarray
from fusewire._api.ops.operations import Axis
from fusewire._errors import ArgumentError
from fusewire_protos.ops import dtypes

__all__ = [
    "nan_to_num",
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmedian",
    "nanmin",
    "nanpercentile",
    "nanprod",
    "nanquantile",
    "nanstd",
    "nansum",
    "nanvar",
]


def nan_to_num(
    x: Any, /, *, copy: bool = True, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Array:
    """Returns `x` with `nan` in place of NaN, and finite numbers in place of infinities: by default the extreme ones.

    Integers are returned as they are. Raises ArgumentError if `copy` is False.
    """
    given = asarray(x)
    if not copy:
        raise ArgumentError("nan_to_num with copy=False writes to x; write x[...] = nan_to_num(x)")
    if isinstance(given, ComplexArray):
        return ComplexArray(*[nan_to_num(part, nan=nan, posinf=posinf, neginf=neginf) for part in given.parts])
    if not given.dtype.is_floating:
        return given.copy()
    limits = finfo(given.dtype)
    most, least = (limits.max if posinf is None else posinf), (limits.min if neginf is None else neginf)
    bounded = where(given == math.inf, most, where(given == -math.inf, least, given))
    return where(isnan(given), nan, bounded)


def nansum(
    x: Any, /, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False, initial: Any = None, where: Any = True
) -> Array:
    """Returns the sum along `axis` of what is not NaN; 0 of nothing. `initial` and `where` are those of `sum`."""
    return _filled(asarray(x), 0).sum(axis, dtype, keepdims=keepdims, initial=initial, where=where)


def nanprod(
    x: Any, /, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False, initial: Any = None, where: Any = True
) -> Array:
    """Returns the product along `axis` of what is not NaN; 1 of nothing. `initial` and `where` are those of `prod`."""
    return _filled(asarray(x), 1).prod(axis, dtype, keepdims=keepdims, initial=initial, where=where)


def nanmax(x: Any, /, axis: Axis = None, *, keepdims: bool = False, initial: Any = None, where: Any = True) -> Array:
    """Returns the greatest element along `axis` of those that are not NaN; NaN if all are, and there is no `initial`.

    `initial` and `where` are those of `max`.
    """
    given = asarray(x)
    greatest = _filled(given, -math.inf).max(axis, keepdims=keepdims, initial=initial, where=where)
    return _nan_of_nothing(given, greatest, axis, keepdims=keepdims) if initial is None else greatest


def nanmin(x: Any, /, axis: Axis = None, *, keepdims: bool = False, initial: Any = None, where: Any = True) -> Array:
    """Returns the least element along `axis` of those that are not NaN; NaN if all are, and there is no `initial`.

    `initial` and `where` are those of `min`.
    """
    given = asarray(x)
    least = _filled(given, math.inf).min(axis, keepdims=keepdims, initial=initial, where=where)
    return _nan_of_nothing(given, least, axis, keepdims=keepdims) if initial is None else least


def nanargmax(x: Any, /, axis: int | None = None, *, keepdims: bool = False) -> Array:
    """Returns the place of `nanmax` along `axis`, in int64; 0 if all elements are NaN, where NumPy raises."""
    return _filled(asarray(x), -math.inf).argmax(axis, keepdims=keepdims)


def nanargmin(x: Any, /, axis: int | None = None, *, keepdims: bool = False) -> Array:
    """Returns the place of `nanmin` along `axis`, in int64; 0 if all elements are NaN, where NumPy raises."""
    return _filled(asarray(x), math.inf).argmin(axis, keepdims=keepdims)


def nancumsum(x: Any, /, axis: int | None = None, dtype: Any = None) -> Array:
    """Returns `cumsum`, in which NaN counts as 0."""
    return cumsum(_filled(asarray(x), 0), axis, dtype)


def nancumprod(x: Any, /, axis: int | None = None, dtype: Any = None) -> Array:
    """Returns `cumprod`, in which NaN counts as 1."""
    return cumprod(_filled(asarray(x), 1), axis, dtype)


def nanmedian(x: Any, /, axis: Axis = None, *, keepdims: bool = False) -> Array:
    """Returns the median along `axis` of what is not NaN; NaN of nothing."""
    return nanquantile(x, 0.5, axis, keepdims=keepdims)


def nanpercentile(x: Any, q: Any, /, axis: Axis = None, *, method: Method = "linear", keepdims: bool = False) -> Array:
    """Returns `nanquantile` of q / 100."""
    return nanquantile(x, of_a_hundred(q), axis, method=method, keepdims=keepdims)


def nanquantile(x: Any, q: Any, /, axis: Axis = None, *, method: Method = "linear", keepdims: bool = False) -> Array:
    """Returns the quantiles `q` along `axis` of what is not NaN, as `quantile` does; NaN of nothing."""
    given = asarray(x)
    if not given.dtype.is_floating:
        return quantile(given, q, axis=axis, method=method, keepdims=keepdims)

    def of_numbers(flat: Array, along: int) -> Callable[[float], Array]:
        ordered, count = sort(flat, axis=along), logical_not(isnan(flat)).sum(along, keepdims=True)
        last = clip(operations.astype(count, dtypes.float64) - 1.0, min=0.0)
        return lambda part: where(count > 0, _at(ordered, last * part, last, along, method), math.nan).squeeze(along)

    return quantiles(given, q, axis, method, of_numbers, keepdims=keepdims)


def _at(ordered: Array, place: Array, last: Array, axis: int, method: str) -> Array:
    """Returns what lies at a place of float64 between two neighbours in order. The last number is at `last`."""
    low = floor(place)
    part = place - low
    weights: dict[str, Callable[[], Array]] = {
        "linear": lambda: part,
        "lower": lambda: part * 0.0,
        "higher": lambda: operations.astype(part > 0, dtypes.float64),
        "midpoint": lambda: where(part > 0, 0.5, 0.0),
        "nearest": lambda: place.round() - low,
    }
    if method not in weights:
        raise ArgumentError(f"nanquantile has no method {method!r}; known are {', '.join(weights)}")
    below, above = (
        take_along_axis(ordered, operations.astype(each, dtypes.int64), axis=axis)
        for each in (low, minimum(low + 1.0, last))
    )
    weight = operations.astype(weights[method](), ordered.dtype, copy=False)
    return where(weight == 0, below, where(weight == 1, above, below + (above - below) * weight))


def nanmean(x: Any, /, axis: Axis = None, *, keepdims: bool = False, where: Any = True) -> Array:
    """Returns the mean along `axis` of what is not NaN, and where `where` is true; NaN of nothing."""
    given = asarray(x)
    return given.mean(axis, keepdims=keepdims, where=_numbers(given, where))


def nanvar(
    x: Any, /, axis: Axis = None, *, correction: float = 0, ddof: float = 0, keepdims: bool = False, where: Any = True
) -> Array:
    """Returns the variance along `axis` of what is not NaN, with the parameters of `var`; NaN of too few elements."""
    given = asarray(x)
    mask = _numbers(given, where)
    return given.var(axis, correction=correction, ddof=ddof, keepdims=keepdims, where=mask)


def nanstd(
    x: Any, /, axis: Axis = None, *, correction: float = 0, ddof: float = 0, keepdims: bool = False, where: Any = True
) -> Array:
    """Returns the square root of `nanvar`."""
    given = asarray(x)
    mask = _numbers(given, where)
    return given.std(axis, correction=correction, ddof=ddof, keepdims=keepdims, where=mask)


def _numbers(x: Array, where: Any) -> Any:
    """Returns a mask of the elements that are not NaN, and where `where` is true. Integers are all numbers."""
    if not _may_have_nan(x):
        return where
    is_number = logical_not(isnan(x))
    return is_number if where is True else is_number & mask_of(x, where)


def _filled(x: Array, value: float) -> Array:
    """Returns `x` with `value` in place of NaN, which integers do not have."""
    return where(isnan(x), value, x) if _may_have_nan(x) else x


def _may_have_nan(x: Array) -> bool:
    return x.dtype.is_floating or x.dtype.is_complex


def _nan_of_nothing(x: Array, extreme: Array, axis: Axis, *, keepdims: bool) -> Array:
    return where(isnan(x).all(axis, keepdims=keepdims), math.nan, extreme) if x.dtype.is_floating else extreme
