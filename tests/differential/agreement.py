"""Compares the results of a call with NumPy's, within what the function may round."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from fusewire_protos.ops import dtypes
from tests.client.api.functions import values
from tests.differential.calls import Call
from tests.differential.draw import Host
from tests.tolerances import epsilon

# Several ops each, or functions that round by themselves: so many floats may lie between the result and NumPy's, which
# is computed in a wider dtype and rounded once.
_ULPS = 4 + values.OF_KERNELS
_ROUNDED = {
    *("acos", "arccos", "acosh", "arccosh", "asin", "arcsin", "asinh", "arcsinh", "atan", "arctan", "atanh", "arctanh"),
    *("atan2", "arctan2", "cbrt", "cosh", "sinh", "tanh", "sin", "cos", "tan", "exp", "exp2", "expm1", "log", "log10"),
    *("log1p", "log2", "deg2rad", "degrees", "rad2deg", "radians", "hypot", "logaddexp", "logaddexp2"),
    *("float_power", "pow", "power", "reciprocal"),
}
# Sums of few rounded terms: the error is a few roundings of the greatest term.
_SUMMED = {
    *("mean", "nanmean", "average", "var", "std", "nanvar", "nanstd", "median", "trapezoid", "interp", "cross", "sinc"),
    *("linspace", "logspace", "geomspace", "gradient", "unwrap", "nanmedian", "nanpercentile", "nanquantile"),
}
_ROUNDINGS = 16
_NOT_WIDER = {"interp"}  # NumPy computes it in float64
_ZEROS_OF_EITHER_SIGN = {
    "fmin",
    "fmax",
    "min",
    "max",
    "amin",
    "amax",
    "nanmin",
    "nanmax",
    "sort",
    "clip",
    "sum",
    "nansum",
    "nancumsum",
}


@np.errstate(all="ignore")
def expected(call: Call) -> list[Host]:
    """Returns NumPy's results. Their dtypes are those of the call itself; what rounds is computed in a wider one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of lines of NaN alone
        warnings.simplefilter("ignore", DeprecationWarning)  # of names that NumPy gives up
        return _expected(call)


def _expected(call: Call) -> list[Host]:
    own = [np.asarray(each) for each in call.results(np, call.arrays)]
    if call.name not in (_ROUNDED | _SUMMED) - _NOT_WIDER or own[0].dtype.kind != "f":
        return own
    wide = [values.wider(each) if each.dtype.kind == "f" else each for each in call.arrays]
    if all(each.dtype.kind != "f" for each in call.arrays):
        wide = [each.astype(np.longdouble) for each in call.arrays]
    return [np.asarray(each).astype(mine.dtype) for each, mine in zip(call.results(np, wide), own, strict=True)]


def assert_agrees(call: Call, actual: list[Host], wanted: list[Host]) -> None:
    """The same number of results, shapes, dtypes and values, within what the function may round."""
    assert len(actual) == len(wanted), call
    for mine, other in zip(actual, wanted, strict=True):
        assert (mine.shape, mine.dtype) == (other.shape, other.dtype), f"{call}: {mine.dtype}{mine.shape}"
        is_close = _is_close(call, mine, other)
        assert is_close.all(), f"{call}\nis {mine[~is_close][:5]}\nnot {other[~is_close][:5]}"


@np.errstate(all="ignore")
def _is_close(call: Call, mine: Host, other: Host) -> Any:
    if mine.dtype.kind != "f":
        return mine == other
    is_same = (mine == other) | (np.isnan(mine) & np.isnan(other))
    if call.name in ("logaddexp", "logaddexp2"):  # where it cancels, NumPy's own loses digits too
        is_same |= values.cancels(other, *call.arrays)
    if call.name in _ROUNDED:
        return is_same | (values.distance_ulps(mine, other) <= _ULPS)
    if call.name in _SUMMED:
        return is_same | (np.abs(mine - other) <= _ROUNDINGS * _error_of_a_term(call, other))
    if call.name in _ZEROS_OF_EITHER_SIGN:
        return is_same
    return is_same & (np.isnan(mine) | (np.signbit(mine) == np.signbit(other)))


def _error_of_a_term(call: Call, other: Host) -> float:
    """The rounding of the greatest number that may be a term of the sum: a square of the greatest operand."""
    numbers = [np.abs(each[np.isfinite(each)].astype(float)).max(initial=1.0) for each in (*call.arrays, other)]
    return float(max(numbers)) ** 2 * epsilon(dtypes.from_numpy(other.dtype))
