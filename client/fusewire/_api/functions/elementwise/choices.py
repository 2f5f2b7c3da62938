"""Elementwise functions whose parameters are not those of one op, or that consist of a few ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from fusewire._api.array import Array
from fusewire._api.catalogue.catalogued import maximum, minimum, power
from fusewire._api.devices import Device
from fusewire._api.functions.creation.creation import array
from fusewire._api.ops import operations
from fusewire._api.ops.operands import apply_to_any, arrays_of, asarray
from fusewire._api.ops.operations import dtype_of
from fusewire._errors import ArgumentError
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME

__all__ = ["astype", "clip", "pow", "round", "select", "where"]

pow = power  # noqa: A001  # the standard's name


def round(x: Any, /, decimals: int = 0) -> Array:  # noqa: A001  # the standard's name
    """Rounds `x` to `decimals` places, with ties to even. Negative `decimals` round to tens, hundreds, …"""
    return asarray(x).round(decimals)


@overload
def where(condition: Any, /) -> tuple[Array, ...]: ...
@overload
def where(condition: Any, x1: Any, x2: Any, /) -> Array: ...
def where(condition: Any, x1: Any = None, x2: Any = None, /) -> Any:
    """Returns `x1` where `condition` holds, else `x2`. Without these it waits, and returns `nonzero(condition)`."""
    if x1 is not None and x2 is not None:
        return apply_to_any(BY_NAME["where"], condition, x1, x2)
    if x1 is not None or x2 is not None:
        raise TypeError("where takes a condition, or a condition and two choices")
    return asarray(condition).nonzero()


def select(condlist: Sequence[Any], choicelist: Sequence[Any], /, default: Any = 0) -> Array:
    """Returns for each element the choice of the first condition that holds, or `default` where none does.

    Raises ArgumentError unless there is a choice for each condition and one or more of them, and TypeError for a
    condition that is not boolean.
    """
    if len(condlist) != len(choicelist) or not len(condlist):
        raise ArgumentError(f"select takes a choice for each condition, not {len(choicelist)} for {len(condlist)}")
    conditions = arrays_of(*condlist)
    for each in conditions:
        if not each.dtype.is_boolean:
            raise TypeError(f"the conditions of select are boolean, not {each.dtype.name}")
    chosen = default
    for holds, choice in zip(reversed(conditions), reversed(choicelist), strict=True):
        chosen = where(holds, choice, chosen)
    result: Array = chosen
    return result


def clip(x: Any, /, min: Any = None, max: Any = None) -> Array:  # noqa: A002  # the standard's names
    """Limits `x` to values from `min` to `max`. None sets no bound."""
    least, most = _bounds(x, min, max)
    if least is None and most is None:
        return array(x)
    if least is None:
        return minimum(x, most)
    if most is None:
        return maximum(x, least)
    return apply_to_any(BY_NAME["clip"], x, least, most)


def _bounds(x: Any, least: Any, most: Any) -> tuple[Any, Any]:
    """Returns the bounds of `clip`.

    A Python integer that limits no value of the operands' integer dtype becomes None.
    """
    strong = [dtype_of(each.dtype) for each in (x, least, most) if isinstance(each, Array | np.ndarray | np.generic)]
    if not strong or not dtypes.promote_all(strong).is_integer:
        return least, most
    limits = np.iinfo(dtypes.to_numpy(dtypes.promote_all(strong)))
    is_below = type(least) is int and least <= limits.min
    is_above = type(most) is int and most >= limits.max
    return (None if is_below else least), (None if is_above else most)


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Device = None) -> Array:
    """Casts `x` to another dtype. Floats become integers by truncation; floats out of range saturate, NaN becomes 0.

    Raises ArgumentError if `device` is neither None nor the device of `x`.
    """
    return operations.astype(asarray(x, device=device), dtype, copy=copy)
