"""Whether values are close or equal. The answers are arrays on the server: `bool(answer)` waits for one."""

from __future__ import annotations

from typing import Any

from fusewire._api.array import Array
from fusewire._api.catalogue.catalogued import abs, isfinite, isnan  # noqa: A004  # the standard's name
from fusewire._api.functions.dtypes import result_type
from fusewire._api.functions.elementwise.choices import where
from fusewire._api.ops.float_operands import arrays_in, scalar_beside, uploaded
from fusewire._api.ops.operands import arrays_of
from fusewire._errors import ShapeError
from fusewire_protos.ops import dtypes

__all__ = ["allclose", "array_equal", "array_equiv", "isclose"]


def isclose(x1: Any, x2: Any, /, rtol: float = 1e-5, atol: float = 1e-8, *, equal_nan: bool = False) -> Array:
    """Returns whether |`x1` − `x2`| ≤ `atol` + `rtol` · |`x2`|, elementwise. Equal infinities are close.

    NaN is close to NaN only with `equal_nan`. Integers are compared in float64, and halves in float32.
    """
    given = uploaded((x1, x2))
    a, b = arrays_in(dtypes.quotient(result_type(*given)).accumulator, given)
    is_close = where(isfinite(b), abs(a - b) <= atol + rtol * abs(b), a == b)
    return is_close | (isnan(a) & isnan(b)) if equal_nan else is_close


def allclose(x1: Any, x2: Any, /, rtol: float = 1e-5, atol: float = 1e-8, *, equal_nan: bool = False) -> Array:
    """Returns whether all elements are close, as `isclose` tells: a boolean array of rank 0. It waits for nothing."""
    return isclose(x1, x2, rtol, atol, equal_nan=equal_nan).all()


def array_equal(x1: Any, x2: Any, /, *, equal_nan: bool = False) -> Array:
    """Returns whether both have one shape and equal elements: a boolean array of rank 0. It waits for nothing."""
    a, b = arrays_of(x1, x2)
    if a.shape != b.shape:
        return scalar_beside((a,), False, dtypes.bool_)
    is_equal = a == b
    return ((is_equal | (isnan(a) & isnan(b))) if equal_nan else is_equal).all()


def array_equiv(x1: Any, x2: Any, /) -> Array:
    """Returns whether both broadcast to one shape and are equal there: a boolean array of rank 0, as `array_equal`."""
    a, b = arrays_of(x1, x2)
    try:
        return (a == b).all()
    except ShapeError:
        return scalar_beside((a,), False, dtypes.bool_)
